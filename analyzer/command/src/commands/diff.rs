//! `urscope diff`: compares two runs.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Options, Verdict, questions, report};

use crate::{arguments::AnswerArguments, input::refuse_without_traces, output::answer};

/// Compare two runs: which findings are new or fixed, and how the calls differ.
///
/// Findings are matched by rule and place in the program, not by process numbers or addresses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope diff urscope-traces/app-1 urscope-traces/app-2\n  \
        urscope diff last-week.json urscope-traces/app-2\n\n\
        Exit codes: 0 no new finding fails the run, 1 a new finding does, 2 not compared.")]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    form: AnswerArguments,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine. May be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// The earlier run: a directory of traces, a trace, or a report in JSON.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The later run, given in the same way.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
}

/// Prints the differences. The exit code is 1 if a new finding fails the run.
pub(crate) fn diff(arguments: &DiffArguments) -> Result<ExitCode, Box<dyn Error>> {
    let DiffArguments { before, after, .. } = arguments;
    refuse_without_traces(before)?;
    refuse_without_traces(after)?;
    let options = Options { symbols: arguments.symbols.clone(), ..Options::default() };
    let diff = questions::diff(before, after, &options)?;
    answer(&arguments.form, &diff, |diff, mut out, paint| report::diff(diff, &mut out, paint))?;
    let fails = diff.introduced.iter().any(|finding| finding.fails);
    Ok(if fails { Verdict::Findings } else { Verdict::Clean }.exit_code().into())
}
