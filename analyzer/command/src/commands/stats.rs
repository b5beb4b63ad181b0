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
    #[command(flatten)]
    question: QuestionArguments,
}

/// Prints the statistics.
pub(crate) fn stats(arguments: &Arguments) -> ExitCode {
    let question = &arguments.question;
    let found = answered(question, |traces, options| questions::stats(traces, options));
    answer(question.format, found, |stats, out, paint| report::stats(stats, out, paint))
}
