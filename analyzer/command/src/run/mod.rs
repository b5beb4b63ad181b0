//! `urscope run`: prepares the environment, runs a program and everything it starts, then analyzes the traces.
//!
//! It must not touch the program's input and output. All errors of urscope itself are found before the program starts,
//! so that a long run is never lost because a directory cannot be written.

mod book;
mod descendants;
mod early_deaths;
mod end_of_process;
mod environment;
mod job;
mod looks;
mod merged;
mod notices;
mod observation;
mod observer;
mod process_tree;
mod signals;
mod temporary_install;
mod traces;
mod verdict;
mod xpti;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, error::Error, io, os::unix::process::ExitStatusExt as _, process, process::ExitCode};

pub(crate) use process_tree::exit_code;
pub(crate) use signals::until_interrupted;
pub(crate) use temporary_install::{TemporaryInstall, unfit_for_preloading};
pub(crate) use traces::writable;

use urscope_analyzer::Options;
use urscope_schema::host::{launcher, placeholders};
use urscope_schema::trace::process_times::{EarlyDeath, ProcessTimes};

use crate::arguments::{Device, Format, RunArguments, VerdictArguments, WindowArguments};
use crate::output::{complain, is_quiet, named_here};
use crate::{parts, program::Program, shell::quoted, window::Window};
use environment::Surroundings;
use job::{Job, Judge, Ranks};
use merged::{Merged, TracePlace};
use observer::ProcessObserver;
use process_tree::End;
use traces::{Traces, unusable};
use verdict::{Finished, Reporting, Unseen};

/// Runs the program and analyzes its traces. Returns the program's exit code if it is not 0, else that of the verdict.
///
/// `verdict` is the one of the arguments with what the project's file adds. `dispatcher` finds the dispatcher of XPTI
/// for a program: where it is wanted, or else where the calls are observed by nothing else. `has_gpu` says whether the
/// machine has a GPU.
pub(crate) fn run(
    arguments: &RunArguments,
    verdict: &VerdictArguments,
    dispatcher: fn(&Program, bool) -> Option<PathBuf>,
    has_gpu: fn() -> bool,
) -> Result<ExitCode, Box<dyn Error>> {
    let [name, rest @ ..] = &*arguments.command else {
        return Err("no program is given; expected urscope run [OPTIONS] -- PROGRAM [ARGUMENTS]".into());
    };
    let program = Program::find(name, env::var_os("PATH").as_deref())?;

    let mut install = TemporaryInstall::default();
    let mut surroundings = Surroundings::default();
    match arguments.device {
        Device::Native => {}
        Device::Software => surroundings.device = Some(install.device(&parts::device()?)?),
        Device::SoftwareCuda => surroundings.cuda = Some(install.cuda(&parts::cuda()?)?),
    }
    let mut traces = None;
    let mut ranks = None;
    let asked = arguments.dir.clone().or_else(|| env::var_os("URSCOPE_DIR").map(Into::into));
    // Directories that differ by rank are those of runs that are judged together later.
    let has_own_folder = asked.as_deref().is_some_and(is_one_by_rank);
    let job = if !arguments.no_shim && !has_own_folder { Job::of_this_process() } else { None };
    let is_chosen = arguments.ranks.has(launcher::rank(|name| env::var_os(name)));
    // A rank that is left out runs without the library. It still takes part in the agreement on who judges.
    let is_traced = !arguments.no_shim && (is_chosen || job.is_some());
    let is_judged = !arguments.no_check && is_traced;
    if is_traced {
        if is_chosen {
            surroundings.library = Some(install.library(&parts::library()?)?);
            surroundings.sanitizer = program.sanitizer();
            surroundings.dispatcher = xpti::dispatcher(|is_wanted| dispatcher(&program, is_wanted))?;
        }
        surroundings.ranks = arguments.ranks.clone();
        surroundings.inner_calls = arguments.inner_calls;
        surroundings.trace_limit = arguments.trace_limit;
        surroundings.command_lines = verdict.command_lines;
        let asked = asked.as_deref().map(named_here);
        let mut prepared = Traces::prepare(asked.as_deref(), Path::new(name), job.as_ref())?;
        if let Some(job) = job {
            let begun = job.begin(&prepared.folder, &mut prepared.run);
            ranks = Some(begun.map_err(|error| unusable(prepared.path(), &error))?);
        }
        (surroundings.only_records, surroundings.is_judged) = (!verdict.verbose, is_judged);
        surroundings.traces = Some((prepared.path().to_path_buf(), prepared.run.clone()));
        traces = Some(prepared);
    }
    // A run that does not begin leaves no directory behind.
    let tidied = |error| {
        traces.iter().for_each(Traces::tidy);
        error
    };
    let reporting = is_judged.then(|| Reporting::new(verdict, arguments.report.as_deref()));
    let reporting = reporting.transpose().map_err(tidied)?;

    let window = traces.as_ref().filter(|_| arguments.view);
    let window = window.map(|traces| shown(verdict, &arguments.window, traces, reporting.as_ref(), &mut install));
    let window = window.transpose().map_err(tidied)?;

    let observer = traces.as_ref().map(|traces| ProcessObserver::start(traces, surroundings.library.as_deref()));
    surroundings.observer = observer.iter().flatten().map(|observer| observer.address.clone()).collect();
    let mut command = process::Command::new(name);
    let variables = surroundings.changes(|name| env::var_os(name)).map_err(|error| tidied(error.into()))?;
    command.args(rest).envs(variables);
    let limit = arguments.wait_for_children.map(|seconds| Duration::from_secs(seconds.into()));
    let ended = process_tree::run(&mut command, limit);
    let death = death(ended.as_ref().ok(), &program, surroundings.library.as_ref().and(traces.as_ref()));
    let observation = observer.map(|observer| observer.map_or_else(|none| none, |observer| observer.finish(death)));
    let end = ended.inspect_err(|_| traces.iter().for_each(Traces::tidy))?;
    if !end.left.is_empty() {
        // The remaining processes may still start programs that load the library and the device from here.
        install.keep();
    }

    let mut code = exit_code(end.status);
    if let (Some(traces), Some(mut observation)) = (&traces, observation) {
        let judge = ranks.as_ref().map_or(Judge::Alone, |ranks| {
            ranks.end(&mut observation).unwrap_or_else(|error| {
                tell_alone(ranks, &error);
                Judge::Alone
            })
        });
        let (merged, happened) = match reporting {
            Some(_) if judge == Judge::Another => {
                tell_job(traces, ranks.as_ref());
                return Ok(code.into());
            }
            Some(reporting) => {
                let unseen = match (&ranks, judge) {
                    (Some(ranks), Judge::Last(joined)) => Unseen::Here(ranks.job.absent(joined)),
                    (None, _) if !has_own_folder => Unseen::Elsewhere,
                    _ => Unseen::Here(None),
                };
                let has_gpu = &|| arguments.device != Device::Native || has_gpu();
                let observed = &observation;
                let finished = Finished { traces, observed, program: &program, end: &end, unseen, has_gpu };
                let given = verdict::give(verdict, reporting, finished);
                code = if code == 0 { given.code } else { code };
                (given.merged, given.happened)
            }
            None if traces.has_new() => (Merged::NotAsked, None),
            None => (Merged::Nothing, None),
        };
        if let (Some(ranks), Judge::Last(_)) = (&ranks, judge) {
            ranks.forget();
        }
        traces.tidy();
        tell_place(arguments, verdict.format, traces, &merged, happened);
    }
    if let Some(window) = window {
        until_interrupted(|| complain(format_args!("the run is shown at {} until Ctrl-C", window.url())));
    }
    Ok(code.into())
}

/// What there is to write if the program has died of a signal, and made no trace.
fn death(end: Option<&End>, program: &Program, traces: Option<&Traces>) -> Option<ProcessTimes> {
    let end = end?;
    let run = traces?.run.clone();
    let signal = end.status.signal()?.unsigned_abs();
    let executable = program.path.to_string_lossy().into_owned();
    let early_death = Some(EarlyDeath { executable, ..EarlyDeath::of_rank(|name| env::var_os(name)) });
    Some(ProcessTimes { pid: end.program, run, signal: Some(signal), early_death, ..ProcessTimes::default() })
}

/// Whether a directory is another one for each rank or process.
fn is_one_by_rank(folder: &Path) -> bool {
    let with = |rank| placeholders::fill(folder, "", rank, Some(rank));
    with(1) != with(2)
}

fn tell_job(traces: &Traces, ranks: Option<&Ranks>) {
    if let Some(ranks) = ranks.filter(|_| !is_quiet()) {
        let rank = ranks.job.rank;
        let folder = traces.shown().display();
        complain(format_args!(
            "rank {rank} has ended; the last rank to end on this host judges all of them, in {folder}"
        ));
    }
}

/// Tells the user that this rank could not agree with the others on who judges.
fn tell_alone(ranks: &Ranks, error: &io::Error) {
    let rank = ranks.job.rank;
    let file = ranks.path();
    complain(format_args!(
        "rank {rank} cannot agree with the other ranks on who judges, because {file} cannot be used: {error}; it judges what is there \
         now, so judge all traces when the job is over, with urscope check"
    ));
}

/// Says where the traces are, and at the end of all lines what happened and how to see it.
fn tell_place(arguments: &RunArguments, format: Format, traces: &Traces, merged: &Merged, happened: Option<String>) {
    let place = TracePlace { folder: traces.shown(), merged };
    // A report for programs must not be followed by other text.
    let is_judged = !arguments.no_shim && !arguments.no_check;
    let clean_stderr = is_judged && arguments.report.is_none() && format != Format::Text;
    let is_wanted = !matches!(merged, Merged::Nothing) && !clean_stderr && !is_quiet();
    if is_wanted || place.is_a_problem() {
        complain(&place);
    }
    if let Some(happened) = happened.filter(|_| is_wanted) {
        complain(format_args!("{happened}; `urscope view {}` shows it", quoted(traces.shown())));
    }
}

/// Shows the page before the program starts, so that the browser is not one of the processes that are waited for.
fn shown(
    verdict: &VerdictArguments,
    window: &WindowArguments,
    traces: &Traces,
    reporting: Option<&Reporting>,
    install: &mut TemporaryInstall,
) -> Result<Window, Box<dyn Error>> {
    let exemptions = reporting.map(|reporting| reporting.exemptions.clone()).unwrap_or_default();
    let options = Options { command_lines: false, listed: true, ..verdict.options(exemptions) };
    let subject = traces.subject(options);
    let window = Window::open(window, verdict.source.sources(), subject)?;
    complain(format_args!("the run is shown at {}", window.url()));
    window.show(|address| install.page(address));
    Ok(window)
}
