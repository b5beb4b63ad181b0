//! Questions about a whole run besides its judgement: what is held, the history of one handle, call statistics, and the
//! differences between two runs.
//!
//! Most questions are [observers](crate::analysis::Observer) of an analysis. Each answer is a type that is shown as
//! text and as JSON. The field names of the answers are their JSON format; every answer contains its version.

mod call_filter;
mod call_list;
mod calls_by;
mod diff;
mod handle;
mod holders;
mod snapshot;
mod stats;

pub use call_filter::{CallFilter, Searched};
pub use call_list::{CallFollower, CallLine, calls};
pub use calls_by::{CallPart, CallsBy, calls_by};
pub use diff::{Diff, diff};
pub use handle::{HandleHistory, KnownHandles, Moment, handle, handles, histories};
pub use holders::{By, Held, HeldBy, Holders, HoldersBy, HoldersCollector, LOST, Lost, Part, holders};
pub use snapshot::{Amount, Snapshot, SnapshotFollower, snapshot};
pub use stats::{Calls, Latency, SAMPLES, Sample, Share, Stats, StatsCollector, Who, stats};

/// The version of the JSON format of all answers.
pub const VERSION: u32 = 1;

use std::time::Duration;

use crate::{AnalysisError, analysis::ExemptionError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The traces could not be analyzed.
    #[error(transparent)]
    Judge(#[from] AnalysisError),
    /// A file is not a report.
    #[error(transparent)]
    NoReport(#[from] ExemptionError),
    /// The requested moment is after the end of the run.
    #[error("the last record of the traces is at +{:.3} s; ask for an earlier moment than +{:.3} s", last.as_secs_f64(), at.as_secs_f64())]
    TooLate {
        /// The moment.
        at: Duration,
        /// The time of the last record.
        last: Duration,
    },
    /// The requested handle is not in the run.
    #[error("no handle has the fingerprint or the address {name}; {known}")]
    NoSuchHandle {
        /// The requested fingerprint or address.
        name: String,
        /// The handles that are there.
        known: KnownHandles,
    },
}

/// Parses a fingerprint or an address, as `0x…` or as a decimal number. The error says what was expected.
pub fn word(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("expected a fingerprint or an address like 0xa3bab144fd8c6355, found {text}"))
}
