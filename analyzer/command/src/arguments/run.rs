//! The arguments of `urscope run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use urscope_schema::host::ranks::Ranks;

use super::{Device, REPORT, VerdictArguments, WindowArguments};

/// The heading of options that say what is recorded.
const TRACING: &str = "Tracing";

/// Run a program and everything it starts, trace it, then analyze the traces.
///
/// The program is not changed and need not be rebuilt: LD_PRELOAD loads the library liburscope.so into it and into all
/// processes that it starts. Its input and output are not touched; urscope writes its report to standard error, after
/// the program has ended.
///
/// The traces have the binary form, unless URSCOPE_FORMAT chooses another one. Beside them, urscope writes merged.json,
/// a timeline of all processes for Perfetto, as `urscope export` does. For a run of more than 100,000 calls or 1,000
/// processes, it prints the command that does it.
///
/// The program only records: what it did is judged at its end. With --verbose, URSCOPE_VALIDATE=on or URSCOPE_ON_ERROR,
/// the rules are checked while it runs, too.
///
/// Under an MPI launcher there may be one urscope for all ranks (`urscope run -- mpiexec -n 2 ./app`) or one for each
/// of them (`mpiexec -n 2 urscope run -- ./app`). In the second case the ranks on a host share a directory, and the
/// last one to end judges all of them, unless --dir names another directory for each rank (%r).
///
/// If processes that the program started are still running when it ends, urscope waits for them. Ctrl-C or
/// --wait-for-children ends the waiting.
#[derive(Debug, Args)]
#[command(
    override_usage = "urscope run [OPTIONS] -- <PROGRAM> [ARGUMENTS]...",
    after_help = "Examples:\n  \
        urscope run -- ./app arg1 arg2\n  \
        urscope run --device software -- python3 exchange.py\n  \
        urscope run --format json --report report.json --dir traces -- mpirun -n 2 ./app\n  \
        urscope run --ranks 0,3-5 -- mpiexec -n 16 ./app\n  \
        urscope run --fail-on error -- ./app        leaks are reported, but do not fail the run\n  \
        urscope run --view -- ./app                 show it in a browser while it runs\n  \
        urscope run --format github --output sarif=report.sarif --output html=report.html -- ./app\n  \
        urscope run --baseline main.json -- ./app   only new findings fail the run\n\n\
        Exit code: the program's if that is not 0 (128 and the signal's number if a signal ended it), else the \
        verdict's: 0 clean, 1 findings, 2 not judged, or only in part. 127: no such program, 126: it cannot be executed.\n\n\
        Environment: URSCOPE_LIBRARY names another liburscope.so, URSCOPE_FORMAT=chrome makes the trace of each process a Chrome \
        trace, URSCOPE_QUIET=1 suppresses messages unless there is a problem."
)]
pub(crate) struct RunArguments {
    /// The program and its arguments.
    #[arg(required_unless_present = "module", trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,

    /// The device that the program finds.
    ///
    /// A device in software needs no GPU and no driver.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    pub(crate) device: Device,

    /// The directory for the traces. [default: $URSCOPE_DIR, else urscope-traces/<PROGRAM>-<N>]
    ///
    /// It is created if it does not exist. Traces of earlier runs in it are kept and not analyzed again. In the name,
    /// %h is this host, %p this process and %r its rank under an MPI launcher.
    #[arg(long, value_name = "DIR", help_heading = TRACING)]
    pub(crate) dir: Option<PathBuf>,

    /// Trace only these ranks of an MPI job, as in `0,3-5`.
    ///
    /// The others run without urscope. What they do with memory that is shared with them is not known, so such a run is
    /// judged in part at best.
    #[arg(long, value_name = "RANKS", default_value_t, hide_default_value = true, conflicts_with = "no_shim", help_heading = TRACING)]
    pub(crate) ranks: Ranks,

    /// Also record the calls of Level Zero that the runtime makes inside of its own.
    ///
    /// Only those inside of calls that share something. They are shown below these, and not judged.
    #[arg(long, conflicts_with = "no_shim", help_heading = TRACING)]
    pub(crate) inner_calls: bool,

    /// The size of a process's trace from which on not every command is recorded. [default: 1024]
    ///
    /// From there on, whether commands are ordered is not judged. Uses of memory after its end are found all the same.
    #[arg(long, value_name = "MIB", conflicts_with = "no_shim", help_heading = TRACING)]
    pub(crate) trace_limit: Option<u32>,

    /// Run the program on the chosen device, but do not trace it.
    #[arg(long, help_heading = TRACING)]
    pub(crate) no_shim: bool,

    /// Trace only.
    ///
    /// The traces are not read, so there is no merged.json either: `urscope check` and `urscope export` do it later.
    #[arg(long, help_heading = TRACING)]
    pub(crate) no_check: bool,

    /// Wait at most this long for processes that outlive the program. [default: until they end]
    ///
    /// Then their traces are judged as far as they are written.
    #[arg(long, value_name = "SECONDS", help_heading = TRACING)]
    pub(crate) wait_for_children: Option<u32>,

    /// Write the report to a file instead of standard error.
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,

    /// Show the run in a browser while it runs, and afterwards until Ctrl-C.
    ///
    /// As `urscope view` does.
    #[arg(long, conflicts_with = "no_shim", help_heading = "Browser")]
    pub(crate) view: bool,

    #[command(flatten, next_help_heading = "Browser")]
    pub(crate) window: WindowArguments,

    /// A module of Python and its arguments, in place of a program. Only the Python package has an interpreter for it.
    #[arg(short = 'm', num_args = 1.., allow_hyphen_values = true, hide = true, value_name = "MODULE")]
    module: Vec<OsString>,
}

impl RunArguments {
    /// Makes `-m MODULE …` the command, as if `--` were in front of it.
    pub(crate) fn take_module(&mut self) {
        if self.module.is_empty() {
            return;
        }
        // What stands behind a `--` among the arguments of the module is no value of the option.
        let behind = std::mem::take(&mut self.command);
        let dashes = (!behind.is_empty()).then(|| "--".into());
        self.command =
            [OsString::from("-m")].into_iter().chain(self.module.drain(..)).chain(dashes).chain(behind).collect();
    }

    /// Whether the program is a script of Python, or a module (`-m`). No other argument decides it.
    pub(crate) fn is_for_python(&self) -> bool {
        self.command.first().is_some_and(|first| {
            let file = Path::new(first);
            first == "-m" || file.extension().is_some_and(|extension| extension == "py") && file.is_file()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// Parses the arguments of `urscope run` alone.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    #[test]
    fn arguments_after_the_program_belong_to_it() {
        for line in ["run ./app --dir x -- --no-check", "run -- ./app --dir x -- --no-check"] {
            let run = Line::try_parse_from(line.split(' ')).unwrap().run;
            assert_eq!(run.command, ["./app", "--dir", "x", "--", "--no-check"], "{line}");
            assert_eq!((run.dir, run.no_check), (None, false), "{line}");
        }
    }

    #[test]
    fn only_the_first_word_makes_a_program_one_of_python() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x.py");
        std::fs::write(&script, "").unwrap();
        let script = script.to_str().unwrap();
        for (line, command, is_for_python) in [
            ("run --no-check X -a", "X -a", true),
            ("run -- X", "X", true),
            ("run python X fixed", "python X fixed", false),
            ("run --dir X mpiexec -n 2 python X", "mpiexec -n 2 python X", false),
            ("run missing.py", "missing.py", false),
            ("run --no-shim -m this -v --dir d", "-m this -v --dir d", true),
            ("run -m this -- -a -- b", "-m this -- -a -- b", true),
            ("run -- -m this", "-m this", true),
        ] {
            let [line, command] = [line, command].map(|text| text.replace('X', script));
            let mut run = Line::try_parse_from(line.split(' ')).unwrap().run;
            run.take_module();
            assert_eq!(run.command, command.split(' ').collect::<Vec<_>>(), "{line}");
            assert_eq!(run.is_for_python(), is_for_python, "{line}");
        }
        assert!(Line::try_parse_from(["run", "-m"]).is_err() && Line::try_parse_from(["run"]).is_err());
    }
}
