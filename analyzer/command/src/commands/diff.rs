//! `urscope diff`: what differs between two runs.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Options, Verdict, questions, report};

use crate::{arguments::PlainFormat, output::answer};

/// What a change introduced or cured: the findings and the calls of one run against those of another.
///
/// A finding is known again by its rule and its place in the program, not by process numbers or addresses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope diff urscope-traces/app-1 urscope-traces/app-2\n  \
        urscope diff last-week.json urscope-traces/app-2\n\n\
        Exit codes: 0 nothing that fails a run was introduced, 1 something was, 2 could not compare.")]
pub(crate) struct Arguments {
    /// The form of the answer.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// The run of before: a directory of traces, a trace, or a report in JSON.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The run of after.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
}

/// Prints the differences. New findings that fail a run make it fail.
pub(crate) fn diff(arguments: &Arguments) -> ExitCode {
    let options = Options { symbols: arguments.symbols.clone(), ..Options::default() };
    let found = questions::diff(&arguments.before, &arguments.after, &options);
    let introduced = found.as_ref().is_ok_and(|diff| diff.introduced.iter().any(|finding| finding.fails));
    let code = answer(arguments.format, found, |diff, out, color| report::diff(diff, out, color));
    if introduced && code == ExitCode::SUCCESS { Verdict::Findings.exit_code().into() } else { code }
}
