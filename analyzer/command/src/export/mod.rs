//! One timeline of all processes, for Perfetto: calls, the lives of handles and openings, arrows between processes, counters
//! and findings; and tables of the same.
//!
//! `timeline` draws the account of a hearing with the marks of `drawing`; `chrome` writes these as a Chrome trace in the
//! object form, `perfetto` in Perfetto's own. `tables` writes rows. Nothing is kept but what lives: all is written while the
//! traces are read.

mod chrome;
mod drawing;
mod perfetto;
pub mod tables;
mod timeline;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use self::{chrome::Chrome, drawing::Drawing, perfetto::Perfetto, timeline::Timeline};
use urscope_analyzer::{
    AnalysisError,
    analysis::{Analysis, Options},
    lifetimes::LifetimeTracker,
};

pub use drawing::Written;

/// The form of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A Chrome trace, which many programs read.
    #[default]
    Chrome,
    /// Perfetto's own: exact to the last bit.
    Perfetto,
}

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The traces could not be heard.
    #[error(transparent)]
    Judge(#[from] AnalysisError),
    /// It could not be written.
    #[error("it cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes the timeline of a run, and says how much of each is in it.
pub fn export(paths: &[PathBuf], options: &Options, form: Form, out: &mut dyn Write) -> Result<Written, ExportError> {
    match form {
        Form::Chrome => draw(paths, options, Chrome::begin(out)),
        Form::Perfetto => draw(paths, options, Perfetto::begin(out)),
    }
}

fn draw(paths: &[PathBuf], options: &Options, drawing: impl Drawing) -> Result<Written, ExportError> {
    let mut tracker = LifetimeTracker::new(Timeline::new(drawing));
    let mut analysis = Analysis::run(paths, options, &mut tracker)?;
    let mut timeline = tracker.into_sink();
    for finding in analysis.judgement().findings {
        timeline.finding(&finding);
    }
    Ok(timeline.end()?)
}
