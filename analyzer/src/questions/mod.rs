//! What can be asked of a whole run besides its judgement: who holds what, how one handle lived, what was called how often,
//! what differs between two runs.
//!
//! Most questions are a [`Listener`](crate::judge::Listener) in a hearing. Each answer is a type that is shown as text and as
//! JSON. The field names of the answers are their JSON form; every answer carries its version.

mod diff;
mod handle;
mod holders;
mod stats;

pub use diff::{Diff, diff};
pub use handle::{Moment, NoSuchHandle, Story, handle};
pub use holders::{Held, HeldBy, Holders, TooLate, holders};
pub use stats::{Calls, Latency, SAMPLES, Sample, Stats, stats};

/// The version of the JSON form of all answers.
pub const VERSION: u32 = 1;

use crate::{JudgeError, judge::ExemptionError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The traces could not be heard.
    #[error(transparent)]
    Judge(#[from] JudgeError),
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
