//! `urscope stats`: prints the statistics of a run.

use std::process::ExitCode;

use clap::Args;
use urscope_analyzer::{questions, report};

use crate::{arguments::QuestionArguments, input::answered, output::answer};

/// Print how often each function was called, how long it took, and how much was shared over time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope stats urscope-traces/app-1\n  \
        urscope stats --format json urscope-traces/app-1 | jq '.calls[] | select(.errors != {})'\n\n\
        Exit codes: 0 answered, 2 not answered.")]
pub(crate) struct Arguments {
    /// Show the calls of at most so many processes. The totals are those of all.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    #[command(flatten)]
    question: QuestionArguments,
}

/// Prints the statistics.
pub(crate) fn stats(arguments: &Arguments) -> ExitCode {
    let question = &arguments.question;
    let found = answered(question, questions::stats);
    let found = found.map(|stats| stats.limited(arguments.limit.unwrap_or(usize::MAX)));
    answer(&question.form, found, |stats, mut out, paint| report::stats(stats, &mut out, paint))
}
