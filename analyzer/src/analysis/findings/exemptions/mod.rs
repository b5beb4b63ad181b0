//! Findings that are there and do not count: those that somebody suppressed, and those of before.
//!
//! They stay in the judgement, with the reason; nothing is hidden, only the verdict is drawn without them.

mod baseline;
mod pattern;
mod suppressions;

use std::{io, path::PathBuf};

pub use baseline::Baseline;
pub use suppressions::{Suppressions, suppressing};

use crate::analysis::{Compared, Excuse, FoundFinding, SuppressionUse};

/// What does not count in a run.
#[derive(Clone, Debug, Default)]
pub struct Exemptions {
    /// What somebody has looked at and lets pass.
    pub suppressions: Suppressions,
    /// What was found before.
    pub baseline: Option<Baseline>,
}

impl Exemptions {
    /// Excuses what is known, and says what has come and gone against the baseline.
    pub fn excuse(&self, findings: &mut [FoundFinding]) -> Option<Compared> {
        self.apply(findings).1
    }

    /// Says of each finding whether it is excused, and of each exemption what it was good for.
    pub(crate) fn apply(&self, findings: &mut [FoundFinding]) -> (Vec<SuppressionUse>, Option<Compared>) {
        let compared = self.baseline.as_ref().map(|baseline| baseline.compare(findings));
        // Who reads of a suppression can look it up, so it is the better reason of two.
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

/// Why exemptions cannot be used; each says where, what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExemptionError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}; expected {expected}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What it should be.
        expected: &'static str,
    },
    /// A line of a suppressions file says nothing that can be understood.
    #[error("{}:{line}: {found}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it, and what was expected.
        found: String,
    },
    /// A baseline is no report of ours.
    #[error(
        "{} is no report of urscope: {found}; expected one that --format json or --output json=FILE wrote",
        path.display()
    )]
    NoReport {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
}
