//! `urscope holders`: who holds what.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use urscope_analyzer::{questions, report};

use crate::{arguments::QuestionArguments, output::answer};

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
pub(crate) struct Arguments {
    /// The moment, since the first process began: 1.5s, 20ms.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    at: Option<Duration>,

    #[command(flatten)]
    question: QuestionArguments,
}

/// Prints who holds what.
pub(crate) fn holders(arguments: &Arguments) -> ExitCode {
    let question = &arguments.question;
    let found = questions::holders(&question.traces.paths, &question.options(), arguments.at);
    answer(question.format, found, |holders, out, color| report::holders(holders, out, color))
}

/// A time as `1.5s`, `20ms` or `1.5`, which are seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let text = text.strip_prefix('+').unwrap_or(text).replace(' ', "");
    let (number, unit) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        number if number.len() == text.len() => (number, 1.0),
        number => match &text[number.len()..] {
            "s" => (number, 1.0),
            "ms" => (number, 1e-3),
            "us" => (number, 1e-6),
            other => return Err(format!("{other} is no unit of time here; expected s, ms or us")),
        },
    };
    let seconds = number.parse::<f64>().map_err(|_| format!("expected a time like 1.5s or 20ms, found {text}"))?;
    Duration::try_from_secs_f64(seconds * unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("+20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("7 us"), Ok(Duration::from_micros(7)));
        for wrong in ["", "s", "1h", "-1", "inf"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
