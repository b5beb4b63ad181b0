//! `urscope run`: prepares the environment, runs a program and everything it starts, then analyzes the traces.
//!
//! It must not touch the program's input and output. All errors of urscope itself are found before the program starts, so that
//! a long run is never lost because a directory cannot be written.

mod descendants;
mod environment;
mod error;
mod job;
mod merged;
mod process_times;
mod process_tree;
mod signals;
mod temporary_install;
mod traces;
mod verdict;
mod xpti;

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process,
    process::ExitCode,
};

pub(crate) use error::RunError;
pub(crate) use signals::until_interrupted;
pub(crate) use temporary_install::unfit_for_preloading;
pub(crate) use traces::writable;

use urscope_analyzer::Options;
use urscope_schema::{placeholders, ranks::Ranks as ChosenRanks};

use crate::{
    arguments::{Device, Format, VerdictArguments, WindowArguments},
    output::{complain, is_quiet, named_here},
    parts,
    program::Program,
    shell::quoted,
    view::Subject,
    window::Window,
};
use environment::Surroundings;
use job::{Job, Ranks, Turn};
use merged::{Merged, TracePlace};
use process_times::ProcessObserver;
use temporary_install::TemporaryInstall;
use traces::Traces;
use verdict::Reporting;

/// The options of a run.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [OsString],
    /// The Level Zero device that the program finds.
    pub(crate) device: Device,
    /// The directory for the traces, if one is named.
    pub(crate) folder: Option<&'a Path>,
    /// The ranks that are traced.
    pub(crate) ranks: &'a ChosenRanks,
    /// Whether calls inside of others are recorded.
    pub(crate) inner_calls: bool,
    /// Whether the shim is loaded into the program.
    pub(crate) traced: bool,
    /// Whether the traces are analyzed at the end.
    pub(crate) judged: bool,
    /// Finds the dispatcher of XPTI for a program: where it is wanted, or else where the calls are observed by nothing else.
    pub(crate) dispatcher: fn(&Program, bool) -> Option<PathBuf>,
    /// Whether findings are reported while the program runs, too.
    pub(crate) verbose: bool,
    /// The file that the report is written to instead of standard error.
    pub(crate) report: Option<&'a Path>,
    /// How the verdict is made and shown.
    pub(crate) verdict: &'a VerdictArguments,
    /// How the run is shown in a browser; `None` if it is not shown.
    pub(crate) window: Option<&'a WindowArguments>,
}

/// Runs the program and analyzes its traces. Returns the program's exit code if it is not 0, else that of the verdict.
pub(crate) fn run(request: &Request<'_>) -> ExitCode {
    run_or_refuse(request).unwrap_or_else(|error| {
        complain(&error);
        error.exit_code().into()
    })
}

fn run_or_refuse(request: &Request<'_>) -> Result<ExitCode, RunError> {
    let [name, rest @ ..] = request.command else { return Err(RunError::NoProgram) };
    let program = Program::find(name, env::var_os("PATH").as_deref())?;

    let mut install = TemporaryInstall::default();
    let mut surroundings = Surroundings::default();
    if request.device == Device::Software {
        surroundings.device = Some(install.device(&parts::device()?)?);
    }
    let (mut traces, mut ranks) = (None, None);
    let asked = request.folder.map(Path::to_path_buf).or_else(|| env::var_os("URSCOPE_DIR").map(Into::into));
    // Directories that differ by rank are those of runs that are judged together later.
    let has_own_folder = asked.as_deref().is_some_and(is_one_by_rank);
    let job = if request.traced && !has_own_folder { Job::of_this_process() } else { None };
    let is_chosen = request.ranks.has(placeholders::rank(|name| env::var_os(name)));
    // A rank that is left out runs without the library. It still takes part in the agreement of the ranks on who judges.
    let is_traced = request.traced && (is_chosen || job.is_some());
    let is_judged = request.judged && is_traced;
    if is_traced {
        if is_chosen {
            surroundings.library = Some(install.library(&parts::library()?)?);
            surroundings.sanitizer = program.sanitizer();
            surroundings.dispatcher = xpti::dispatcher(|is_wanted| (request.dispatcher)(&program, is_wanted))?;
        }
        surroundings.ranks = request.ranks.clone();
        surroundings.inner_calls = request.inner_calls;
        surroundings.command_lines = request.verdict.command_lines;
        let asked = asked.as_deref().map(named_here);
        let prepared = Traces::prepare(asked.as_deref(), Path::new(name), job.as_ref())?;
        if let Some(job) = job {
            let failed = |source| RunError::Traces { path: prepared.folder().to_owned(), source };
            ranks = Some(job.begin(prepared.held()).map_err(failed)?);
        }
        surroundings.judged_later = is_judged && !request.verbose;
        surroundings.traces = Some((prepared.folder().to_path_buf(), prepared.run().to_owned()));
        traces = Some(prepared);
    }
    let reporting = if is_judged { Some(Reporting::new(request.verdict, request.report)?) } else { None };

    let window = match (&traces, request.window) {
        (Some(traces), Some(window)) => Some(shown(request, window, traces, reporting.as_ref())?),
        _ => None,
    };

    let mut command = process::Command::new(name);
    command.args(rest).envs(surroundings.changes(|name| env::var_os(name)));
    // Without it, only the ends of killed processes are less well known.
    let observer = traces.as_ref().and_then(|traces| ProcessObserver::start(traces.held().clone()).ok());
    let ended = process_tree::run(&mut command);
    let seen = observer.map(ProcessObserver::finish).unwrap_or_default();
    let end = match ended {
        Ok(end) => end,
        Err(error) => {
            traces.iter().for_each(Traces::tidy);
            return Err(error.about(name));
        }
    };
    if !end.left.is_empty() {
        // The remaining processes may still start programs that load the library and the device from here.
        install.keep();
    }

    let mut code = end.status.exit_code();
    if let Some(traces) = &traces {
        let turn = ranks.as_ref().map(Ranks::end).transpose();
        if let (Some(ranks), Err(error)) = (&ranks, &turn) {
            tell_alone(ranks, error);
        }
        let merged = match reporting {
            Some(_) if matches!(turn, Ok(Some(Turn::Leave))) => {
                tell_job(traces, ranks.as_ref());
                return Ok(code.into());
            }
            Some(reporting) => {
                let (verdict, merged) = verdict::give(request.verdict, reporting, (traces, &seen), &program, &end);
                code = if code == 0 { verdict } else { code };
                merged
            }
            None if traces.has_new() => Merged::NotAsked,
            None => Merged::Nothing,
        };
        if let (Some(ranks), Ok(Some(Turn::Judge))) = (&ranks, turn) {
            ranks.forget();
        }
        traces.tidy();
        tell_place(request, traces, &merged);
    }
    if let Some(window) = window {
        until_interrupted(|| complain(format_args!("the run is shown at {} until Ctrl-C", window.url())));
    }
    Ok(code.into())
}

/// Whether a directory is another one for each rank or process.
fn is_one_by_rank(folder: &Path) -> bool {
    let with = |rank| placeholders::fill(folder, "", rank, Some(rank));
    with(1) != with(2)
}

/// Tells the user who judges this rank.
fn tell_job(traces: &Traces, ranks: Option<&Ranks>) {
    if let Some(ranks) = ranks.filter(|_| !is_quiet()) {
        let (rank, folder) = (ranks.job.rank, traces.shown().display());
        complain(format_args!(
            "rank {rank} has ended; the last rank to end on this host judges all of them, in {folder}"
        ));
    }
}

/// Tells the user that this rank could not agree with the others on who judges.
fn tell_alone(ranks: &Ranks, error: &io::Error) {
    let (rank, file) = (ranks.job.rank, ranks.path());
    complain(format_args!(
        "rank {rank} cannot agree with the other ranks on who judges, because {file} cannot be used: {error}; it judges what is there \
         now, so judge all traces when the job is over, with urscope check"
    ));
}

/// Tells the user where the traces are, and the merged trace.
fn tell_place(request: &Request<'_>, traces: &Traces, merged: &Merged) {
    let place = TracePlace { folder: traces.shown(), merged };
    // A report for programs must not be followed by other text.
    let clean_stderr = request.judged && request.report.is_none() && request.verdict.format != Format::Text;
    let is_wanted = !matches!(merged, Merged::Nothing) && !clean_stderr && !is_quiet();
    if is_wanted || place.is_a_problem() {
        complain(place);
    }
}

/// Shows the page of the run before the program starts, so that the browser is not one of the processes that are waited for.
fn shown(
    request: &Request<'_>,
    window: &WindowArguments,
    traces: &Traces,
    reporting: Option<&Reporting>,
) -> Result<Window, RunError> {
    let exemptions = reporting.map(Reporting::exemptions).cloned().unwrap_or_default();
    let subject = Subject {
        title: traces.shown().display().to_string(),
        watched: vec![traces.folder().to_owned()],
        paths: {
            let traces = traces.clone();
            Box::new(move || traces.of_this_run())
        },
        again: format!("urscope view {}", quoted(traces.folder())),
        options: Options { command_lines: false, listed: true, ..request.verdict.options(exemptions) },
    };
    let window = Window::open(window, subject)?;
    complain(format_args!("the run is shown at {}", window.url()));
    window.show();
    Ok(window)
}
