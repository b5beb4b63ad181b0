//! `urscope holders`, `urscope handle`, `urscope stats` and `urscope diff`: questions about a whole run.

use std::{
    io::{self, BufWriter, Write as _},
    process::ExitCode,
    time::Duration,
};

use serde::Serialize;
use urscope_analyzer::{
    Options, Verdict,
    questions::{self, QuestionError},
    report,
};

use super::{
    AskArguments, DiffArguments, HandleArguments, HoldersArguments, PlainFormat, StatsArguments, complain, wants_color,
};

/// Who holds what.
pub(crate) fn holders(arguments: &HoldersArguments) -> ExitCode {
    let answer = questions::holders(&arguments.ask.traces.paths, &options(&arguments.ask), arguments.at);
    tell(arguments.ask.format, answer, |answer, out, color| report::holders(answer, out, color))
}

/// The life of one handle.
pub(crate) fn handle(arguments: &HandleArguments) -> ExitCode {
    let answer = questions::handle(&arguments.ask.traces.paths, &options(&arguments.ask), arguments.name);
    tell(arguments.ask.format, answer, |answer, out, color| report::handle(answer, out, color))
}

/// The figures of a run.
pub(crate) fn stats(arguments: &StatsArguments) -> ExitCode {
    let answer = questions::stats(&arguments.ask.traces.paths, &options(&arguments.ask));
    tell(arguments.ask.format, answer, |answer, out, color| report::stats(answer, out, color))
}

/// What differs between two runs. Findings that are new make it fail, as those of a run do.
pub(crate) fn diff(arguments: &DiffArguments) -> ExitCode {
    let options = Options { symbols: arguments.symbols.clone(), ..Options::default() };
    let answer = questions::diff(&arguments.before, &arguments.after, &options);
    let introduced = answer.as_ref().is_ok_and(|diff| diff.introduced.iter().any(|finding| finding.fails));
    let told = tell(arguments.format, answer, |answer, out, color| report::diff(answer, out, color));
    if introduced && told == ExitCode::SUCCESS { Verdict::Findings.exit_code().into() } else { told }
}

fn options(arguments: &AskArguments) -> Options {
    Options { symbols: arguments.traces.symbols.clone(), ..Options::default() }
}

type Out<'a> = BufWriter<io::StdoutLock<'a>>;

fn tell<A: Serialize>(
    format: PlainFormat,
    answer: Result<A, QuestionError>,
    text: impl FnOnce(&A, &mut Out<'_>, bool) -> io::Result<()>,
) -> ExitCode {
    let failed = Verdict::NotJudged.exit_code().into();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            complain(error);
            return failed;
        }
    };
    let stdout = io::stdout();
    let color = wants_color(&stdout);
    let mut out = BufWriter::new(stdout.lock());
    let written = match format {
        PlainFormat::Text => text(&answer, &mut out, color),
        PlainFormat::Json => report::json(&answer, &mut out),
    };
    match written.and_then(|()| out.flush()) {
        // Whoever reads only the start has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("the answer cannot be written to standard output: {error}"));
            failed
        }
        _ => ExitCode::SUCCESS,
    }
}

/// A time as `1.5s`, `20ms` or `1.5`, which are seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
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
