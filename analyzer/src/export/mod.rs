//! One timeline of all processes, for Perfetto: calls, the lives of handles and openings, arrows between processes, counters
//! and findings.
//!
//! `timeline` draws the account of a hearing in terms of a timeline; `chrome` writes that as a Chrome trace
//! in the object form. Nothing is kept but what lives: a timeline is written while the traces are read.

mod chrome;
mod timeline;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use crate::{
    JudgeError,
    account::Account,
    judge::{Hearing, Options},
};

pub use chrome::Written;

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The traces could not be heard.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The timeline could not be written.
    #[error("the timeline cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes the timeline of a run as one Chrome trace, and says how much of each is in it.
pub fn export(paths: &[PathBuf], options: &Options, out: &mut dyn Write) -> Result<Written, ExportError> {
    let mut account = Account::new(timeline::Timeline::new(chrome::Chrome::begin(out)));
    let mut hearing = Hearing::hold(paths, options, &mut account)?;
    let mut timeline = account.into_scribe();
    for finding in hearing.judgement().findings {
        timeline.finding(&finding);
    }
    Ok(timeline.end()?)
}
