//! The baseline: an earlier report, whose findings are known.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use urscope_rules::Severity;

use super::ExemptionError;
use crate::analysis::{Compared, Excuse, FoundFinding, GoneFinding, Judgement, VERSION, findings::report_text};

/// The findings of an earlier report.
#[derive(Clone, Debug)]
pub struct Baseline {
    path: PathBuf,
    findings: Vec<FoundFinding>,
}

/// The part of a report that is parsed first.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// The part of a report that is compared.
#[derive(Deserialize)]
struct Earlier {
    findings: Vec<FoundFinding>,
}

impl Baseline {
    /// Reads a report in JSON.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "a report in JSON";
        let text = report_text(path);
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// The findings of a judgement, with `path` as the name of its report.
    pub fn of(path: &Path, judgement: &Judgement) -> Self {
        Self { path: path.to_owned(), findings: judgement.findings.clone() }
    }

    /// Parses the text of a report; `path` names it in errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ExemptionError> {
        let no_report = |found: String| ExemptionError::NoReport { path: path.to_owned(), found };
        let head: Head = serde_json::from_slice(text).map_err(|error| no_report(error.to_string()))?;
        if head.version > VERSION {
            return Err(no_report(format!("it has version {}, and this urscope reads up to {VERSION}", head.version)));
        }
        let earlier: Earlier = serde_json::from_slice(text).map_err(|error| no_report(error.to_string()))?;
        Ok(Self { path: path.to_owned(), findings: earlier.findings })
    }

    /// Excuses known findings, each as often as the baseline has it, and returns those that are gone. A known finding
    /// with a higher severity is new.
    pub(crate) fn compare(&self, findings: &mut [FoundFinding]) -> Compared {
        let mut before: HashMap<String, Vec<(usize, Severity)>> = HashMap::new();
        for (index, finding) in self.findings.iter().enumerate() {
            before.entry(finding.identity_of()).or_default().push((index, finding.severity));
        }
        for finding in findings {
            let Some(known) = before.get_mut(&finding.identity) else { continue };
            if let Some(at) = known.iter().position(|(_, severity)| *severity >= finding.severity) {
                known.remove(at);
                finding.excuse = Some(Excuse::Baseline);
            }
        }
        let left: BTreeSet<usize> = before.into_values().flatten().map(|(index, _)| index).collect();
        let gone = left.into_iter().filter_map(|index| self.findings.get(index)).map(GoneFinding::of).collect();
        Compared { file: self.path.display().to_string(), known: 0, new: 0, gone }
    }
}
