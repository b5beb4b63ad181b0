//! Workflow commands of GitHub Actions: an annotation per finding at its source line, and the verdict.
//!
//! <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>: `::error
//! file=F,line=L,title=T::MESSAGE`, with `%` and line ends, and in properties also `:` and `,`, percent-encoded.

use std::io::{self, Write};
use std::path::Path;

use urscope_rules::Severity;

use super::source;
use super::text::{HOSTS, happened, headline, hosts, repeated, whereabouts};
use crate::analysis::{FoundFinding, Judgement, Verdict};

pub(super) fn write(judgement: &Judgement, root: &Path, out: &mut impl Write) -> io::Result<()> {
    if let Some(happened) = happened(judgement, false.into()) {
        writeln!(out, "{happened}")?;
    }
    writeln!(out, "{}", headline(judgement, false.into()))?;
    for finding in judgement.findings.iter().filter(|finding| finding.excuse.is_none()) {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut properties = Vec::new();
        if let Some((file, line)) = finding.locations().find_map(|side| side.source()) {
            properties.push(format!("file={}", property(source::below(root, file).unwrap_or(file))));
            properties.extend(line.map(|line| format!("line={line}")));
        }
        properties.push(format!("title={}", property(&format!("urscope: {}", finding.rule))));
        writeln!(out, "::{command} {}::{}", properties.join(","), data(&message(judgement, finding)))?;
    }
    if let Some(reason) = &judgement.reason {
        let (command, title) = match judgement.verdict {
            Verdict::NotJudged => ("error", "urscope: not judged"),
            Verdict::PartlyJudged => ("error", "urscope: partly judged"),
            Verdict::Clean | Verdict::Findings => ("warning", "urscope: not seen"),
        };
        writeln!(out, "::{command} title={}::{}", property(title), data(reason))?;
    }
    for unused in judgement.suppressions.iter().filter(|suppression| suppression.count == 0) {
        let message = format!("{} was not needed: {}", unused.place, unused.text);
        writeln!(out, "::notice title={}::{}", property("urscope: unused suppression"), data(&message))?;
    }
    Ok(())
}

fn message(judgement: &Judgement, finding: &FoundFinding) -> String {
    let count = repeated(finding).map_or_else(String::new, |count| format!(" ({count})"));
    let there = finding
        .other
        .as_ref()
        .map_or_else(String::new, |other| format!("\nthere: {}{}", whereabouts(other), other.via()));
    let hosts = hosts(finding, HOSTS).map_or_else(String::new, |hosts| format!("\nhosts: {hosts}"));
    let FoundFinding { message, process, advice, .. } = finding;
    format!(
        "{}\n{message}{count}\nhere: {}{}{there}{hosts}\nhelp: {advice}",
        judgement.sentence(finding),
        whereabouts(process),
        process.via()
    )
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
