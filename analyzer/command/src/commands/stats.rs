//! `urscope stats`: prints the statistics of a run.

use std::{error::Error, process::ExitCode};

use clap::Args;
use urscope_analyzer::questions::{self, By};
use urscope_analyzer::report;

use crate::arguments::{DIVISIONS, QuestionArguments, one_of};
use crate::{input::chosen, output::answer};

/// Count calls, errors and times, and show what was pinned over time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope stats urscope-traces/app-1\n  \
        urscope stats --by site --limit 10\n  \
        urscope stats --format json urscope-traces/app-1 | jq '.calls[] | select(.errors != {})'\n\n\
        Exit codes: 0 answered, 2 not answered.")]
pub(crate) struct StatsArguments {
    /// Add up the calls by the function that made them, by rank or by process.
    #[arg(long, value_name = "WHAT", value_parser = one_of(&DIVISIONS))]
    by: Option<By>,

    /// Show the calls of at most so many processes, or parts with --by. The totals are those of all.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    #[command(flatten)]
    question: QuestionArguments,
}

pub(crate) fn stats(arguments: &StatsArguments) -> Result<ExitCode, Box<dyn Error>> {
    let StatsArguments { question, by, limit } = arguments;
    let form = &question.form;
    let limit = limit.unwrap_or(usize::MAX);
    let traces = chosen(&question.traces, false)?;
    let options = question.options();
    if let Some(by) = *by {
        let parts = questions::calls_by(&traces, &options, by, limit)?;
        answer(form, &parts, |parts, mut out, paint| report::calls_by(parts, &mut out, paint))?;
    } else {
        let stats = questions::stats(&traces, &options)?.limited(limit);
        answer(form, &stats, |stats, mut out, paint| report::stats(stats, &mut out, paint))?;
    }
    Ok(ExitCode::SUCCESS)
}
