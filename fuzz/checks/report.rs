//! What is kept and merged between runs, whatever it holds: it is refused, or merged in any order and judged, and what
//! is said of it can be shown in all forms and taken for a baseline again.
//!
//! An input is two report files, a suppressions file and a baseline, with a separator byte between them.

use std::path::Path;

use urscope_analyzer::analysis::exemptions::{self, Baseline, Suppressions};
use urscope_analyzer::{Exemptions, Judgement, Options, Report, report as forms};

/// The record separator of ASCII.
const SEPARATOR: u8 = 0x1e;

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == SEPARATOR);
    let mut next = || parts.next().unwrap_or_default();
    let one = parse(next());
    let two = parse(next());
    let suppressions = Suppressions::parse(Path::new("known.txt"), &String::from_utf8_lossy(next()));
    let baseline = Baseline::parse(Path::new("main.json"), next());
    let (Some(one), two) = (one, two.unwrap_or_default()) else { return };

    let merged = one.clone().merge(two.clone());
    assert_eq!(merged, two.merge(one), "the order of reports matters");
    let exemptions = Exemptions { suppressions: suppressions.unwrap_or_default(), baseline: baseline.ok() };
    let options = Options { exemptions, ..Options::default() };
    show(&merged.judgement(&[], &options));
}

/// A report, if it is one: what is written of it is the same one.
fn parse(text: &[u8]) -> Option<Report> {
    let path = Path::new("node.urscope");
    let report = Report::parse(path, text).ok()?;
    let mut written = Vec::new();
    report.write(&mut written).expect("memory can be written");
    let again = Report::parse(path, &written).expect("what is written can be read");
    assert_eq!(again, report, "it is not read as it was written");
    Some(report)
}

fn show(judgement: &Judgement) {
    assert_eq!(judgement.exit, judgement.verdict.exit_code());
    let root = Path::new("/src");
    let written = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).expect("memory can be written");
        String::from_utf8(out).expect("a report is text")
    };
    for text in [
        written(&|out| forms::text(judgement, out, false)),
        written(&|out| forms::junit(judgement, out)),
        written(&|out| forms::html(judgement, out)),
        written(&|out| forms::github(judgement, root, out)),
        written(&|out| forms::sarif(judgement, root, out)),
    ] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "a control character escapes");
    }
    let json = written(&|out| forms::json(judgement, out));
    Baseline::parse(Path::new("report.json"), json.as_bytes()).expect("a report is a baseline");
    let suppressions = exemptions::suppressing(judgement);
    let known = Suppressions::parse(Path::new("known.txt"), &suppressions).expect("what is written can be read");
    let options = Options { exemptions: Exemptions { suppressions: known, baseline: None }, ..Options::default() };
    let mut findings = judgement.findings.clone();
    let _ = options.exemptions.excuse(&mut findings);
}
