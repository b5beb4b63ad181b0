//! The analysis: reads traces and returns a judgement.
//!
//! `reading` reads the trace files, `merging` feeds their events to the rules in the order of time, `findings` counts,
//! combines and exempts the findings, `node_report` lists the results of each node, and `judgement` is the result over
//! all nodes. `symbols` names the frames of call stacks. An [`Observer`] receives the same events as the rules.
//! `following` analyzes a growing run. The analysis must keep only what lives in the traced processes: its memory must
//! not grow with the size of the traces.

mod clock;
mod early_deaths;
mod error;
mod findings;
mod following;
mod judgement;
mod merging;
mod node_report;
mod observer;
mod pattern;
mod progress;
mod reading;
mod symbols;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use urscope_rules::{Place, ProcessId, Severity};
use urscope_schema::trace::process_times::ProcessTimes;

pub use early_deaths::early_deaths;
pub use error::AnalysisError;
pub(crate) use findings::report_text;
pub use findings::{ExemptionError, Exemptions, REPORT_VERSION, Report, ReportError, exemptions};
pub use following::{Following, HOLD};
pub use judgement::{
    Compared, Ended, Excerpt, Excuse, FoundFinding, Frame, GoneFinding, Judgement, Limit, LimitCause, Location,
    Occurrence, ProcessSummary, SkippedLine, SuppressionUse, VERSION, Verdict, report_schema,
};
use merging::Merger;
use node_report::{Comparison, Locator};
pub use observer::Observer;
pub use progress::Progress;
pub(crate) use reading::{ChunkExtent, end_of_text, is_binary, is_blank};
use reading::{ObservedTimes, of_others};
pub use reading::{Stacks, boot_id, contents, header_of, is_running, pid_namespace, runs_below, traces};
use symbols::FoundWrappers;
pub use symbols::{CallSite, CallSites, Wrappers, file_name};

/// The options of an analysis.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lowest severity at which a finding makes the verdict [`Verdict::Findings`].
    pub fail_on: Severity,
    /// Whether findings make the verdict [`Verdict::Findings`] at all.
    pub fails: bool,
    /// Directories with copies of programs and libraries, for traces of another machine.
    pub symbols: Vec<PathBuf>,
    /// The findings that do not count.
    pub exemptions: Exemptions,
    /// The functions that are no call sites.
    pub wrappers: Wrappers,
    /// Where the analysis reports its progress.
    pub progress: Arc<Progress>,
    /// Whether the paths of files were found by listing a directory, and not named by a person. A file that is no trace
    /// is then ignored, and the judgement says so, as for files inside a directory that is given.
    pub listed: bool,
    /// The signals that end processes on purpose, such as `SIGKILL`. A process that was killed by a signal that is not
    /// known counts as killed by one of them, if there are any.
    pub expected_signals: Vec<String>,
    /// The names of other runs that wrote traces into the same directory at the same time, and are not judged with this
    /// one.
    pub beside: Vec<String>,
    /// All that was observed of the processes of the run, if it is known better than from the files beside the traces.
    pub observed: Option<Vec<ProcessTimes>>,
    /// Whether the results contain the command lines of the processes. They may contain secrets, and results are
    /// published.
    pub command_lines: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fail_on: Severity::Warning,
            fails: true,
            symbols: Vec::new(),
            exemptions: Exemptions::default(),
            wrappers: Wrappers::default(),
            progress: Arc::default(),
            listed: false,
            expected_signals: Vec::new(),
            beside: Vec::new(),
            observed: None,
            command_lines: false,
        }
    }
}

impl Options {
    /// Whether a person named `file`, so that it must be a trace.
    pub(crate) fn names(&self, file: &Path, paths: &[PathBuf]) -> bool {
        !self.listed && paths.iter().any(|path| path == file)
    }
}

/// Judges traces: files, or directories that contain `urscope-*.json` or `*.fxt` files.
///
/// If there are no traces, or traces without calls, the verdict is [`Verdict::NotJudged`], with the reason. A named
/// file that is not a trace is an error, and so is a damaged trace, because a verdict over the other files could be
/// wrong. A file of another program inside a directory is ignored, and the judgement says so.
pub fn judge(paths: &[PathBuf], options: &Options) -> Result<Judgement, AnalysisError> {
    Ok(analyze(paths, options)?.judgement(paths, options))
}

/// Analyzes traces as [`fn@judge`] does, and returns a report without a verdict. [`Report::judgement`] computes the
/// verdict once the reports of all nodes are merged.
pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Report, AnalysisError> {
    Ok(Analysis::run(paths, options, &mut ())?.report())
}

/// A finished analysis, which returns its results.
pub struct Analysis<'a> {
    merger: Merger,
    locator: Arc<Mutex<Locator>>,
    paths: &'a [PathBuf],
    options: &'a Options,
    /// What its call stacks show together, once that is needed.
    comparison: Option<Comparison>,
}

impl<'a> Analysis<'a> {
    /// Analyzes all records of traces and passes them to `observer`. The errors are those of [`fn@judge`].
    pub fn run(paths: &'a [PathBuf], options: &'a Options, observer: &mut dyn Observer) -> Result<Self, AnalysisError> {
        let files = traces(paths)?;
        options.progress.expect(&files);
        let mut merger = Merger::default();
        // Of processes without traces, the judgement takes what was observed from the options.
        let of_traces = options.observed.iter().flatten().filter(|line| line.run.is_empty());
        merger.times = ObservedTimes::beside(&files);
        merger.times.is_cut &= options.observed.is_none();
        merger.times.extend(of_traces.cloned());
        merger.run(files, &|file| options.names(file, paths), &options.progress, observer)?;
        let apart = |user| format!("it belongs to the user {user}, and its run to nobody else; name it to judge it");
        merger.foreign.extend(of_others(paths).into_iter().map(|(file, user)| (file, apart(user))));
        let locator = Arc::new(Mutex::new(Locator::new(&options.symbols)));
        Ok(Self { merger, locator, paths, options, comparison: None })
    }

    /// The judgement. Call this once: it takes the findings out of the analysis.
    pub fn judgement(&mut self) -> Judgement {
        self.report().judgement(self.paths, self.options)
    }

    /// The results of each node. Call this once, instead of [`Self::judgement`].
    pub fn report(&mut self) -> Report {
        let mut locator = self.locator.lock().unwrap_or_else(PoisonError::into_inner);
        let report = node_report::report(&mut self.merger, &mut locator, &mut self.comparison);
        if self.options.command_lines { report } else { report.without_command_lines() }
    }

    /// A place as a report shows it, with its call stack. Its time counts from the beginning of the run.
    pub fn location(&mut self, place: Place) -> Location {
        let role = self.role(place.process);
        let found = self.found_wrappers();
        let mut locator = self.locator.lock().unwrap_or_else(PoisonError::into_inner);
        let mut side = locator.location(&self.merger, place);
        self.options.wrappers.mark(&mut side, &found);
        Location { role, time_ns: self.merger.at(place.process, place.time), ..side }
    }

    /// [`ProcessSummary::role`] of a process.
    pub fn role(&mut self, process: ProcessId) -> Option<String> {
        if !node_report::may_have_roles(&self.merger) {
            return None;
        }
        self.found_wrappers();
        let process = self.merger.process(process)?;
        self.comparison.as_ref()?.role(process.host, process.header.pid, &process.header.executable)
    }

    /// The wrappers that the calls of all hosts show.
    pub(crate) fn found_wrappers(&mut self) -> Arc<FoundWrappers> {
        let merger = &self.merger;
        let locator = &self.locator;
        let comparison = self.comparison.get_or_insert_with(|| {
            let mut locator = locator.lock().unwrap_or_else(PoisonError::into_inner);
            locator.compare(merger)
        });
        Arc::clone(&comparison.all)
    }
}
