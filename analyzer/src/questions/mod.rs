//! What can be asked of a whole run besides its judgement: who holds what, how one handle lived, what was called how often,
//! what differs between two runs.
//!
//! Most questions are a [`Observer`](crate::analysis::Observer) in a analysis. Each answer is a type that is shown as text and as
//! JSON. The field names of the answers are their JSON form; every answer carries its version.

mod diff;
mod handle;
mod holders;
mod snapshot;
mod stats;

pub use diff::{Diff, diff};
pub use handle::{HandleHistory, Moment, NoSuchHandle, handle};
pub use holders::{Held, HeldBy, Holders, TooLate, Watch, holders};
pub use snapshot::{Amount, Snapshot, SnapshotFollower, snapshot};
pub use stats::{Calls, Latency, SAMPLES, Sample, Share, Stats, StatsCollector, Who, stats};

/// The version of the JSON form of all answers.
pub const VERSION: u32 = 1;

use crate::{AnalysisError, analysis::ExemptionError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The traces could not be heard.
    #[error(transparent)]
    Judge(#[from] AnalysisError),
    /// What should be a report is none.
    #[error(transparent)]
    NoReport(#[from] ExemptionError),
    /// The moment that was asked for is not in the run.
    #[error(transparent)]
    TooLate(#[from] TooLate),
    /// The handle that was asked for is not in the run.
    #[error(transparent)]
    NoSuchHandle(#[from] NoSuchHandle),
}

/// A word as `0x…` or as a number: a fingerprint, or an address. What else it is, is told.
pub fn word(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("expected a fingerprint or an address like 0xa3bab144fd8c6355, found {text}"))
}
