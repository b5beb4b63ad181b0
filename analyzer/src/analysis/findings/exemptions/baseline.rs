//! The baseline: a report of before, whose findings are known.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use urscope_rules::Severity;

use super::ExemptionError;
use crate::analysis::{Compared, Excuse, FoundFinding, GoneFinding, Judgement, VERSION};

/// What was found before.
#[derive(Clone, Debug)]
pub struct Baseline {
    path: PathBuf,
    findings: Vec<FoundFinding>,
}

/// What is read of a report first.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// What of a report is compared.
#[derive(Deserialize)]
struct Past {
    findings: Vec<FoundFinding>,
}

impl Baseline {
    /// Reads a report in JSON.
    pub fn read(path: &Path) -> Result<Self, ExemptionError> {
        let expected = "a report in JSON";
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| ExemptionError::Unreadable { path: path.to_owned(), source, expected })?;
        Self::parse(path, &text)
    }

    /// What was found in a run that has been judged.
    pub fn of(path: &Path, judgement: &Judgement) -> Self {
        Self { path: path.to_owned(), findings: judgement.findings.clone() }
    }

    /// Reads the text of one.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ExemptionError> {
        let no_report = |found: String| ExemptionError::NoReport { path: path.to_owned(), found };
        let head: Head = serde_json::from_str(text).map_err(|error| no_report(error.to_string()))?;
        if head.version > VERSION {
            return Err(no_report(format!("it has version {}, and this urscope reads up to {VERSION}", head.version)));
        }
        let past: Past = serde_json::from_str(text).map_err(|error| no_report(error.to_string()))?;
        Ok(Self { path: path.to_owned(), findings: past.findings })
    }

    /// Excuses what was found before, as often as it was found, and says what is gone. What has become worse is new.
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
