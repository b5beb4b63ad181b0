//! The judge: traces in, a judgement out.

mod error;
mod judgement;

use std::path::PathBuf;

use urscope_rules::Severity;

pub use error::JudgeError;
pub use judgement::{Ended, FoundFinding, Judgement, Seen, Side, SkippedLine, Verdict};

/// What the judge is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// From which severity on findings make the verdict [`Verdict::Findings`].
    pub fail_on: Severity,
}

impl Default for Options {
    fn default() -> Self {
        Self { fail_on: Severity::Warning }
    }
}

/// Judges traces: files, or directories with `urscope-*.json` files in them.
pub fn judge(_paths: &[PathBuf], _options: &Options) -> Result<Judgement, JudgeError> {
    Ok(Judgement::default())
}
