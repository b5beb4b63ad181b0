//! Exports a run: as one timeline of all processes for Perfetto, with calls, lifetimes of handles and openings, arrows,
//! counters and findings; or as tables.
//!
//! `timeline` converts the events of an analysis to the elements of `drawing`. `chrome` writes these as a Chrome trace,
//! `perfetto` in Perfetto's own format. `tables` writes rows. Everything is written while the traces are read. Only
//! what is alive may be kept, never the whole run.

mod chrome;
mod drawing;
mod perfetto;
pub mod tables;
mod timeline;

use std::io::{self, Write};
use std::path::PathBuf;

use self::{chrome::Chrome, drawing::Drawing, perfetto::Perfetto, timeline::Timeline};
use urscope_analyzer::analysis::{Analysis, CallSites, Options};
use urscope_analyzer::{AnalysisError, Judgement, lifetimes::LifetimeTracker};

pub use drawing::Written;

/// The format of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A Chrome trace, which many programs read.
    #[default]
    Chrome,
    /// Perfetto's own format, with exact 64-bit numbers.
    Perfetto,
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The traces could not be analyzed.
    #[error(transparent)]
    Judge(#[from] AnalysisError),
    /// The output could not be written.
    #[error("the output cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes the timeline of a run. Returns how many elements of each kind it has. A first analysis finds the findings and
/// the wrappers, a second one draws.
pub fn export(paths: &[PathBuf], options: &Options, form: Form, out: &mut dyn Write) -> Result<Written, ExportError> {
    let mut analysis = Analysis::run(paths, options, &mut ())?;
    let sites = CallSites::agreeing_with(&mut analysis, options);
    draw(paths, options, form, out, &analysis.judgement(), sites)
}

/// Writes the timeline of a run with the findings and the call sites of an analysis.
pub(crate) fn draw(
    paths: &[PathBuf],
    options: &Options,
    form: Form,
    out: &mut dyn Write,
    judgement: &Judgement,
    sites: CallSites,
) -> Result<Written, ExportError> {
    match form {
        Form::Chrome => draw_as(paths, options, Chrome::begin(out), judgement, sites),
        Form::Perfetto => draw_as(paths, options, Perfetto::begin(out), judgement, sites),
    }
}

fn draw_as(
    paths: &[PathBuf],
    options: &Options,
    drawing: impl Drawing,
    judgement: &Judgement,
    sites: CallSites,
) -> Result<Written, ExportError> {
    let mut tracker = LifetimeTracker::new(Timeline::new(drawing, sites));
    Analysis::run(paths, options, &mut tracker)?;
    Ok(tracker.into_sink().end(judgement)?)
}
