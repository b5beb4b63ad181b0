//! Compares two runs: the findings that are new, and those that are fixed, and the number of calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{QuestionError, VERSION};
use crate::analysis::{
    ExemptionError, Exemptions, FoundFinding, GoneFinding, Judgement, Options, Verdict, exemptions::Baseline, judge,
    report_text,
};
use crate::files;

/// What differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// [`VERSION`].
    pub version: u32,
    /// The verdicts, before and after.
    pub verdicts: [Verdict; 2],
    /// Why a run was not judged, before and after.
    pub reasons: [Option<String>; 2],
    /// The findings of the second run that are new, more frequent or more severe than in the first.
    pub introduced: Vec<FoundFinding>,
    /// The findings of the first run that the second does not have.
    pub cured: Vec<GoneFinding>,
    /// The number of findings in both runs.
    pub common: u64,
    /// The number of calls, before and after, of each function where it differs.
    pub calls: BTreeMap<String, [u64; 2]>,
}

/// Compares two runs. Each path is a directory of traces, a trace, or a report that `--format json` wrote.
pub fn diff(before: &Path, after: &Path, options: &Options) -> Result<Diff, QuestionError> {
    let first = load(before, options)?;
    let baseline = Some(Baseline::from_judgement(before, &first));
    let mut second = load(after, options)?;
    let compared = Exemptions { baseline, ..Exemptions::default() }.excuse(&mut second.findings);
    let (common, cured) = compared.map(|compared| (compared.known, compared.gone)).unwrap_or_default();
    let verdicts = [first.verdict, second.verdict];
    let mut calls: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (index, judgement) in [&first, &second].into_iter().enumerate() {
        for (function, count) in &judgement.calls {
            if let Some(slot) = calls.entry(function.clone()).or_default().get_mut(index) {
                *slot = *count;
            }
        }
    }
    calls.retain(|_, [before, after]| before != after);
    let introduced = second.findings.into_iter().filter(|finding| finding.excuse.is_none()).collect();
    Ok(Diff { version: VERSION, verdicts, reasons: [first.reason, second.reason], introduced, cured, common, calls })
}

/// The judgement of a run, without exemptions: analyzes traces, or reads a report.
fn load(path: &Path, options: &Options) -> Result<Judgement, QuestionError> {
    if !is_report(path) {
        return Ok(judge(&[PathBuf::from(path)], options)?);
    }
    let no_report = |found: String| ExemptionError::NoReport { path: path.to_owned(), found };
    let text = report_text(path).map_err(|error| no_report(error.to_string()))?;
    Baseline::parse(path, &text)?;
    let mut judgement: Judgement = serde_json::from_slice(&text).map_err(|error| no_report(error.to_string()))?;
    for finding in &mut judgement.findings {
        finding.excuse = None;
    }
    Ok(judgement)
}

/// Whether a file is a report, which is a JSON object. A trace is an array.
fn is_report(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = files::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && start.trim_ascii_start().first() == Some(&b'{')
}
