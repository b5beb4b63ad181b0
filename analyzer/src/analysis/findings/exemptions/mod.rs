//! Findings that do not count: suppressed ones and those of a baseline.
//!
//! They stay in the judgement, with the reason. Only the verdict ignores them.

mod baseline;
mod suppressions;

use std::{io, path::PathBuf};

pub use baseline::Baseline;
pub use suppressions::{LARGEST_SUPPRESSIONS, Suppressions, suppressing};

use crate::analysis::{Compared, Excuse, FoundFinding, SuppressionUse};

/// The exemptions that apply to a run.
#[derive(Clone, Debug, Default)]
pub struct Exemptions {
    /// The suppressions, from a suppressions file.
    pub suppressions: Suppressions,
    /// The findings of an earlier report.
    pub baseline: Option<Baseline>,
}

impl Exemptions {
    /// Excuses known findings, and returns the comparison with the baseline.
    pub fn excuse(&self, findings: &mut [FoundFinding]) -> Option<Compared> {
        self.apply(findings).1
    }

    /// Excuses known findings, and returns the use of each suppression and the comparison with the baseline.
    pub(crate) fn apply(&self, findings: &mut [FoundFinding]) -> (Vec<SuppressionUse>, Option<Compared>) {
        let compared = self.baseline.as_ref().map(|baseline| baseline.compare(findings));
        // A suppression replaces the baseline as the reason: a reader can look it up in its file.
        let used = self.suppressions.apply(findings);
        (used, compared.map(|compared| count(compared, findings)))
    }
}

fn count(compared: Compared, findings: &[FoundFinding]) -> Compared {
    let with = |wanted: fn(&Excuse) -> bool| findings.iter().filter(|f| f.excuse.as_ref().is_some_and(wanted)).count();
    let known = with(|excuse| matches!(excuse, Excuse::Baseline)) as u64;
    let new = findings.iter().filter(|finding| finding.excuse.is_none()).count() as u64;
    Compared { known, new, ..compared }
}

/// Why exemptions cannot be used. Each message says where, what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExemptionError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}; expected {expected}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
        /// What the file should contain.
        expected: &'static str,
    },
    /// A line of a suppressions file is not a suppression.
    #[error("{}:{line}: {found}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it, and what was expected.
        found: String,
    },
    /// A baseline is not a report of urscope.
    #[error(
        "{} is not a urscope report: {found}; expected one that --format json or --output json=FILE wrote",
        path.display()
    )]
    NoReport {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
}
