//! `urscope run`: runs a program under the shim, then judges.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    arguments::{Device, VerdictArguments, WindowArguments},
    output::complain,
    run::{self, Request, RunError},
};

/// Run a program and everything it starts, trace it, then judge.
///
/// The program is not changed and need not be rebuilt: the library liburscope.so is loaded into it and into all processes
/// it starts (by LD_PRELOAD). Its input and output are its own; urscope writes to standard error, after the end.
///
/// When the program has ended and processes that it started still run, urscope waits for them; Ctrl-C then judges at once.
#[derive(Debug, Args)]
#[command(
    override_usage = "urscope run [OPTIONS] -- <PROGRAM> [ARGUMENTS]...",
    after_help = "Examples:\n  \
        urscope run -- ./app arg1 arg2\n  \
        urscope run --device software -- python3 exchange.py\n  \
        urscope run --format json --report report.json --dir traces -- mpirun -n 2 ./app\n  \
        urscope run --fail-on error -- ./app        leaks are reported, but do not fail the run\n  \
        urscope run --view -- ./app                 look at it in a browser while it runs\n  \
        urscope run --format github --output sarif=report.sarif --output html=report.html -- ./app\n  \
        urscope run --baseline main.json -- ./app   only what is new since then fails the run\n\n\
        Exit code: the program's if that is not 0 (128 and the signal's number if a signal ended it), else the \
        verdict's: 0 clean, 1 findings, 2 could not judge. 127: no such program, 126: it cannot be executed.\n\n\
        Environment: URSCOPE_LIBRARY names another liburscope.so, URSCOPE_QUIET=1 keeps it silent while all is well."
)]
pub(crate) struct Arguments {
    /// The Level Zero device that the program finds: what this machine has, or one in software, which needs no GPU and
    /// no driver.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    device: Device,

    /// The directory for the traces; made if it is not there. Traces of earlier runs in it stay and are not judged
    /// again. %h in it is this host, %p this process, %r its rank under an MPI launcher. [default: $URSCOPE_DIR, else a new directory urscope-traces/<PROGRAM>-<N>]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Run the program on the chosen device only: nothing is loaded into it, traced or judged.
    #[arg(long)]
    no_shim: bool,

    /// Trace only; judge later with `urscope check`.
    #[arg(long)]
    no_check: bool,

    /// Write the report to a file instead of standard error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    verdict: VerdictArguments,

    /// Show the run in a browser while it goes on, and afterwards until Ctrl-C, as `urscope view` does.
    #[arg(long, conflicts_with = "no_shim")]
    view: bool,

    #[command(flatten, next_help_heading = "With --view")]
    window: WindowArguments,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Runs the program, judges, and ends as the program did, or as the verdict says.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if !arguments.view && arguments.window != WindowArguments::default() {
        complain(RunError::NoView);
        return RunError::NoView.exit_code().into();
    }
    run::run(&Request {
        command: &arguments.command,
        device: arguments.device,
        folder: arguments.dir.as_deref(),
        traced: !arguments.no_shim,
        judged: !arguments.no_shim && !arguments.no_check,
        report: arguments.report.as_deref(),
        verdict: &arguments.verdict,
        window: arguments.view.then_some(&arguments.window),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// `urscope run`, whose arguments are parsed by themselves.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Arguments,
    }

    #[test]
    fn what_follows_the_program_is_its_own() {
        for line in ["run ./app --dir x -- --no-check", "run -- ./app --dir x -- --no-check"] {
            let run = Line::try_parse_from(line.split(' ')).unwrap().run;
            assert_eq!(run.command, ["./app", "--dir", "x", "--", "--no-check"], "{line}");
            assert_eq!((run.dir, run.no_check), (None, false), "{line}");
        }
    }
}
