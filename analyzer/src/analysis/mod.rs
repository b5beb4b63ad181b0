//! The judge: traces in, a judgement out.
//!
//! `paths` finds the files, `source` and `cursor` read one of them `act` by event, `lanes` many of them at once, `merger`
//! feeds all of them to the law in the order of time, `deduplicator` counts what the law says, `verdict` says what was seen of each
//! `node`, and `fold` draws the line below all of them. `stack_index` finds call stacks again, `symbols` names their frames, of which
//! `frames` chooses those that count, and `exempt` knows what does not count. A [`Observer`] hears it all as well. Nothing is
//! kept but what lives in the traced processes: the size of the traces does not matter.

mod error;
mod findings;
mod following;
mod judgement;
mod merging;
mod node_report;
mod observer;
mod progress;
mod reading;
mod symbols;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use urscope_rules::{Place, Severity};

pub use error::AnalysisError;
pub use findings::{ExemptionError, Exemptions, REPORT_VERSION, Report, ReportError, exemptions};
pub use following::{Following, HOLD};
pub use judgement::{
    Compared, Ended, Excuse, FoundFinding, Frame, GoneFinding, Judgement, Location, ProcessSummary, SkippedLine,
    SuppressionUse, VERSION, Verdict, report_schema,
};
use merging::Merger;
use node_report::Locator;
pub use observer::Observer;
pub use progress::Progress;
pub(crate) use reading::{end_of_text, is_blank};
pub use reading::{is_running, traces};
pub use symbols::file_name;

/// What the judge is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// From which severity on findings make the verdict [`Verdict::Findings`].
    pub fail_on: Severity,
    /// Where copies of programs and libraries are, for traces of another machine.
    pub symbols: Vec<PathBuf>,
    /// What does not count.
    pub exemptions: Exemptions,
    /// Where the judge says how far it has come.
    pub progress: Arc<Progress>,
}

impl Default for Options {
    fn default() -> Self {
        let (symbols, exemptions, progress) = (Vec::new(), Exemptions::default(), Arc::default());
        Self { fail_on: Severity::Warning, symbols, exemptions, progress }
    }
}

impl Options {
    /// The same for another hearing, whose progress is its own.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self { progress: Arc::default(), ..self.clone() }
    }
}

/// Judges traces: files, or directories with `urscope-*.json` files in them.
///
/// No traces at all, or traces without a call, are a judgement too: [`Verdict::NotJudged`], with the reason. A file that
/// cannot be taken for what it should be is an error, because a verdict over the rest could be wrong.
pub fn judge(paths: &[PathBuf], options: &Options) -> Result<Judgement, AnalysisError> {
    Ok(analyze(paths, options)?.judgement(paths, options))
}

/// Hears traces as [`fn@judge`] does, and leaves the verdict to whoever has the reports of all nodes.
pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Report, AnalysisError> {
    Ok(Analysis::run(paths, options, &mut ())?.report())
}

/// A hearing that is over: what was said in it can be asked for.
pub struct Analysis<'a> {
    merger: Merger,
    locator: Arc<Mutex<Locator>>,
    paths: &'a [PathBuf],
    options: &'a Options,
}

impl<'a> Analysis<'a> {
    /// Hears all records of traces, while somebody else listens. Errors are those of [`fn@judge`].
    pub fn run(paths: &'a [PathBuf], options: &'a Options, observer: &mut dyn Observer) -> Result<Self, AnalysisError> {
        let files = traces(paths)?;
        options.progress.expect(&files);
        let mut merger = Merger::default();
        merger.run(&files, &options.progress, observer)?;
        let locator = Arc::new(Mutex::new(Locator::new(&options.symbols)));
        Ok(Self { merger, locator, paths, options })
    }

    /// The judgement, to be asked for once: the findings are taken from the analysis.
    pub fn judgement(&mut self) -> Judgement {
        self.report().judgement(self.paths, self.options)
    }

    /// What was seen on each node, to be asked for once, as the judgement.
    pub fn report(&mut self) -> Report {
        let mut locator = self.locator.lock().unwrap_or_else(PoisonError::into_inner);
        node_report::report(&mut self.merger, &mut locator)
    }

    /// A place as a report shows it, with its call stack. Its time counts from the beginning of the run.
    pub fn location(&mut self, place: Place) -> Location {
        let mut locator = self.locator.lock().unwrap_or_else(PoisonError::into_inner);
        let side = locator.location(&self.merger, place);
        Location { time_ns: self.merger.at(place.process, place.time), ..side }
    }
}
