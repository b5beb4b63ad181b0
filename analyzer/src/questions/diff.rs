//! What a change introduced or cured: the findings and the calls of one run against those of another.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{QuestionError, VERSION};
use crate::analysis::{
    ExemptionError, Exemptions, FoundFinding, GoneFinding, Judgement, Options, Verdict, exemptions::Baseline, judge,
};

/// What differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// [`VERSION`].
    pub version: u32,
    /// The verdicts: before and after.
    pub verdicts: [Verdict; 2],
    /// Why the one or the other was not judged.
    pub reasons: [Option<String>; 2],
    /// The findings of the second run that the first has not: new ones, more of a known kind, or what became worse.
    pub introduced: Vec<FoundFinding>,
    /// The findings of the first run that the second has no more.
    pub cured: Vec<GoneFinding>,
    /// How many findings both have.
    pub common: u64,
    /// The functions that were called another number of times: before and after.
    pub calls: BTreeMap<String, [u64; 2]>,
}

/// Compares two runs: each is a directory of traces, a trace, or a report that `--format json` wrote.
pub fn diff(before: &Path, after: &Path, options: &Options) -> Result<Diff, QuestionError> {
    let first = taken(before, options)?;
    let baseline = Some(Baseline::of(before, &first));
    let mut second = taken(after, options)?;
    let compared = Exemptions { baseline, ..Exemptions::default() }.excuse(&mut second.findings);
    let (common, cured) = compared.map(|compared| (compared.known, compared.gone)).unwrap_or_default();
    let verdicts = [first.verdict, second.verdict];
    let mut calls: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (place, judgement) in [&first, &second].into_iter().enumerate() {
        for (function, count) in &judgement.calls {
            if let Some(slot) = calls.entry(function.clone()).or_default().get_mut(place) {
                *slot = *count;
            }
        }
    }
    calls.retain(|_, [before, after]| before != after);
    let introduced = second.findings.into_iter().filter(|finding| finding.excuse.is_none()).collect();
    Ok(Diff { version: VERSION, verdicts, reasons: [first.reason, second.reason], introduced, cured, common, calls })
}

/// A judgement, made now or long ago, with nothing excused.
fn taken(path: &Path, options: &Options) -> Result<Judgement, QuestionError> {
    if !is_report(path) {
        return Ok(judge(&[PathBuf::from(path)], options)?);
    }
    let no_report = |found: String| ExemptionError::NoReport { path: path.to_owned(), found };
    let text = fs::read_to_string(path).map_err(|error| no_report(error.to_string()))?;
    Baseline::parse(path, &text)?;
    let mut judgement: Judgement = serde_json::from_str(&text).map_err(|error| no_report(error.to_string()))?;
    for finding in &mut judgement.findings {
        finding.excuse = None;
    }
    Ok(judgement)
}

/// A report is an object, and a trace an array.
fn is_report(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && start.trim_ascii_start().first() == Some(&b'{')
}
