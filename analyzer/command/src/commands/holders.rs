//! `urscope holders`: lists which process holds which object.

use std::{error::Error, process::ExitCode, time::Duration};

use clap::Args;
use urscope_analyzer::questions::{self, By};
use urscope_analyzer::report;

use crate::arguments::{DIVISIONS, QuestionArguments, one_of};
use crate::{input::chosen, output::answer};

/// List which process holds which object.
///
/// These are all memory and events with handle data that is not put, or with openings. Shows the exporter, the
/// processes that have the object open, how often and since when, the calls that wait for an event, and the bytes that
/// are pinned. For a process that has ended, the state is the one at its end; for a process that runs, the current one.
/// --at selects another moment.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope holders urscope-traces/app-1\n  \
        urscope holders --at 1.5s urscope-traces/app-1\n  \
        urscope holders --by site --limit 10\n  \
        urscope holders --format json urscope-traces/app-1 | jq .pinned_bytes\n\n\
        Exit codes: 0 answered, 2 not answered.")]
pub(crate) struct HoldersArguments {
    /// The moment, as time since the first process began: 1.5s, 20ms.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    at: Option<Duration>,

    /// Add up what is held by the function that got or opened it, by rank or by process.
    #[arg(long, value_name = "WHAT", value_parser = one_of(&DIVISIONS))]
    by: Option<By>,

    /// List at most so many objects, or parts with --by. The totals are those of all.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    #[command(flatten)]
    question: QuestionArguments,
}

pub(crate) fn holders(arguments: &HoldersArguments) -> Result<ExitCode, Box<dyn Error>> {
    let question = &arguments.question;
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let form = &question.form;
    let found = questions::holders(&chosen(&question.traces, false)?, &question.options(), arguments.at)?;
    if let Some(by) = arguments.by {
        answer(form, &found.by(by, limit), |parts, mut out, paint| report::holders_by(parts, &mut out, paint))?;
    } else {
        answer(form, &found.limited(limit), |all, mut out, paint| report::holders(all, &mut out, paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses a time: `1.5s`, `20ms`, or `1.5` in seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let text = text.strip_prefix('+').unwrap_or(text).replace(' ', "");
    let (number, unit) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        number if number.len() == text.len() => (number, 1.0),
        number => match &text[number.len()..] {
            "s" => (number, 1.0),
            "ms" => (number, 1e-3),
            "us" => (number, 1e-6),
            other => return Err(format!("expected s, ms or us as the unit of time, found {other}")),
        },
    };
    let seconds = number.parse::<f64>().map_err(|_| format!("expected a time like 1.5s or 20ms, found {text}"))?;
    Duration::try_from_secs_f64(seconds * unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_with_their_units() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("+20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("7 us"), Ok(Duration::from_micros(7)));
        for wrong in ["", "s", "1h", "-1", "inf"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
