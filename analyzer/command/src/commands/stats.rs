//! `urscope stats`: prints the statistics of a run.

use std::process::ExitCode;

use clap::Args;
use urscope_analyzer::{questions, report};

use crate::{
    arguments::{Division, QuestionArguments},
    input::answered,
    output::answer,
};

/// Print how often each function was called, how long it took, and how much was shared over time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope stats urscope-traces/app-1\n  \
        urscope stats --by site --limit 10\n  \
        urscope stats --format json urscope-traces/app-1 | jq '.calls[] | select(.errors != {})'\n\n\
        Exit codes: 0 answered, 2 not answered.")]
pub(crate) struct StatsArguments {
    /// Add up the calls by the function that made them, by rank or by process.
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<Division>,

    /// Show the calls of at most so many processes, or parts with --by. The totals are those of all.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    #[command(flatten)]
    question: QuestionArguments,
}

/// Prints the statistics.
pub(crate) fn stats(arguments: &StatsArguments) -> ExitCode {
    let (question, limit) = (&arguments.question, arguments.limit.unwrap_or(usize::MAX));
    match arguments.by {
        None => {
            let found = answered(question, questions::stats).map(|stats| stats.limited(limit));
            answer(&question.form, found, |stats, mut out, paint| report::stats(stats, &mut out, paint))
        }
        Some(by) => {
            let found = answered(question, |traces, options| questions::calls_by(traces, options, by.into(), limit));
            answer(&question.form, found, |parts, mut out, paint| report::calls_by(parts, &mut out, paint))
        }
    }
}
