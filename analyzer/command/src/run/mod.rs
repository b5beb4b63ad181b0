//! `urscope run`: sets the stage, runs a program and everything it starts, then judges.
//!
//! The program's input, output and exit code are its own. Whatever can go wrong on our side is found out before it
//! starts, so that a long run is never lost to a directory that cannot be written.

mod descendants;
mod environment;
mod error;
mod process_tree;
mod program;
mod signals;
mod temporary_install;
mod traces;
mod verdict;

use std::{env, path::Path, process, process::ExitCode};

pub(crate) use program::Program;
pub(crate) use signals::until_interrupted;
pub(crate) use temporary_install::unfit_for_preloading;
pub(crate) use traces::{HOME, writable};

use urscope_analyzer::Options;

use crate::{
    cli::{Device, Format, RunArguments, Window, WindowArguments, complain, named_here},
    parts,
    view::Subject,
};
use environment::{QUIET, Surroundings, is_quiet};
use error::RunError;
use temporary_install::TemporaryInstall;
use traces::Traces;
use verdict::Reporting;

/// Runs, judges, and ends as the program did, or as the verdict says.
pub(crate) fn run(arguments: &RunArguments) -> ExitCode {
    run_or_refuse(arguments).unwrap_or_else(|error| {
        complain(&error);
        error.exit_code().into()
    })
}

fn run_or_refuse(arguments: &RunArguments) -> Result<ExitCode, RunError> {
    let [name, rest @ ..] = arguments.command.as_slice() else { return Err(RunError::NoProgram) };
    let program = Program::find(name, env::var_os("PATH").as_deref())?;
    let judged = !arguments.no_shim && !arguments.no_check;

    let mut install = TemporaryInstall::default();
    let mut surroundings = Surroundings::default();
    if arguments.device == Device::Software {
        surroundings.device = Some(install.device(&parts::device()?)?);
    }
    let mut traces = None;
    if !arguments.no_shim {
        surroundings.library = Some(install.library(&parts::library()?)?);
        let asked = arguments.dir.clone().or_else(|| env::var_os("URSCOPE_DIR").map(Into::into));
        let asked = asked.as_deref().map(named_here);
        let prepared = Traces::prepare(asked.as_deref(), Path::new(name))?;
        surroundings.traces = Some((prepared.folder().to_path_buf(), prepared.run().to_owned()));
        traces = Some(prepared);
    }
    let reporting = if judged { Some(Reporting::new(&arguments.verdict, arguments.report.as_deref())?) } else { None };

    let window = match &traces {
        Some(traces) if arguments.view => Some(shown(arguments, traces, reporting.as_ref())?),
        _ if arguments.window != WindowArguments::default() => return Err(RunError::NoView),
        _ => None,
    };

    let mut command = process::Command::new(name);
    command.args(rest).envs(surroundings.changes(|name| env::var_os(name)));
    let end = match process_tree::run(&mut command) {
        Ok(end) => end,
        Err(error) => {
            traces.iter().for_each(Traces::tidy);
            return Err(error.about(name));
        }
    };
    if !end.left.is_empty() {
        // They may still start programs, which look for the library and the device here.
        install.keep();
    }

    let mut code = end.status.exit_code();
    if let (Some(traces), Some(reporting)) = (&traces, reporting) {
        let verdict = verdict::give(&arguments.verdict, reporting, traces, &program, &end);
        code = if code == 0 { verdict } else { code };
    }
    if let Some(traces) = traces {
        traces.tidy();
        let clean_stderr = judged && arguments.report.is_none() && arguments.verdict.format != Format::Text;
        if traces.unnamed() && traces.folder().exists() && !clean_stderr && !is_quiet(env::var_os(QUIET)) {
            complain(format_args!(
                "the traces are in {}; https://ui.perfetto.dev opens them, `urscope check` judges them again",
                traces.shown().display()
            ));
        }
    }
    if let Some(window) = window {
        complain(format_args!("the run is shown at {} until Ctrl-C", window.url()));
        until_interrupted();
    }
    Ok(code.into())
}

/// Opens a window on the run, before it begins: the browser is not to be one of those that are waited for.
fn shown(arguments: &RunArguments, traces: &Traces, reporting: Option<&Reporting>) -> Result<Window, RunError> {
    let exemptions = reporting.map(Reporting::exemptions).cloned().unwrap_or_default();
    let subject = Subject {
        title: traces.shown().display().to_string(),
        watched: vec![traces.folder().to_owned()],
        paths: {
            let traces = traces.clone();
            Box::new(move || traces.of_this_run())
        },
        options: Options { fail_on: arguments.verdict.fail_on.into(), exemptions, ..Options::default() },
    };
    let window = Window::open(&arguments.window, subject)?;
    complain(format_args!("the run is shown at {}", window.url()));
    window.show();
    Ok(window)
}
