//! The output of the command: reports and answers to a stream or to files, errors, and progress to a terminal.
//!
//! This module chooses colours and formats. It must not compute anything about a run.

mod files;
mod progress;
mod stdout;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{error::Error, fmt::Display, ops::RangeInclusive, os::fd::AsFd, path::PathBuf, sync::OnceLock};

use urscope_analyzer::report::{self, Paint};
use urscope_analyzer::{Judgement, plain::plain};

pub(crate) use files::{OutputFile, Outputs, exemptions, named_here, opened};
pub(crate) use progress::analyze_watched;
pub(crate) use stdout::{answer, judgement, write_report};

use crate::arguments::{Color, Format, VerdictArguments};

/// Writes a judgement with the page of its run.
pub(crate) type WritePage<'a> = dyn Fn(&Judgement, &mut dyn Write) -> io::Result<()> + 'a;

/// A judgement to be shown, and its page if the traces are here.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) judgement: &'a Judgement,
    pub(crate) page: Option<&'a WritePage<'a>>,
}

/// Writes a judgement in a format. `paint` says how text looks.
pub(crate) fn show(shown: Shown<'_>, format: Format, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let Shown { judgement, page } = shown;
    let _span = tracing::info_span!("rendering", ?format).entered();
    match format {
        Format::Text => report::text(judgement, out, paint)?,
        Format::Json => report::json(judgement, out)?,
        Format::Sarif => report::sarif(judgement, &sources(), out)?,
        Format::Junit => report::junit(judgement, out)?,
        Format::Html => match page {
            Some(write) => write(judgement, out)?,
            None => report::html(judgement, out)?,
        },
        Format::Github => report::github(judgement, &sources(), out)?,
    }
    out.flush()
}

/// The directory that paths of source files are relative to: the checkout on GitHub, otherwise the current directory.
fn sources() -> PathBuf {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|path| !path.is_empty()).map(PathBuf::from);
    workspace.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into())
}

/// Writes a message in one line to standard error. Names in it may be those of a trace, or what somebody else called a
/// file. Does nothing if standard error is closed.
pub(crate) fn complain(what: impl Display) {
    drop(writeln!(io::stderr(), "urscope: {}", plain(&what.to_string())));
}

/// Checks that standard output was written. `failed` begins the message. A reader may close the pipe early.
pub(crate) fn written(result: io::Result<()>, failed: &str) -> Result<(), Box<dyn Error>> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("{failed}: {error}").into()),
        _ => Ok(()),
    }
}

pub(crate) fn look(stream: &(impl IsTerminal + AsFd)) -> Paint {
    Paint { width: width(stream), ..wants_color(stream).into() }
}

pub(crate) fn detailed(paint: Paint, arguments: &VerdictArguments) -> Paint {
    Paint { all: arguments.all, whole: arguments.verbose, ..paint }
}

/// The variable that silences the preloaded library, and the command unless there is a problem.
pub(crate) const QUIET: &str = "URSCOPE_QUIET";

static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Writes no messages from now on that are neither a report, nor an answer, nor about a problem.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether the user asked for silence unless there is a problem.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed) || std::env::var_os(QUIET).is_some_and(|value| value == "1")
}

/// Writes a message to standard error that is not about a problem, unless the user asked for silence.
pub(crate) fn tell(what: impl Display) {
    if !is_quiet() {
        complain(what);
    }
}

/// When output is coloured, if the user said so.
static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets when output is coloured. The first call counts.
pub(crate) fn set_color(color: Color) {
    let _ = COLOR.set(color);
}

/// Whether the output to a stream is coloured. Without `--color`: it is a terminal that can do it (`TERM` is not
/// `dumb`), or `CLICOLOR_FORCE` is set (<https://bixense.com/clicolors>), and `NO_COLOR` is not set
/// (<https://no-color.org>).
pub(crate) fn wants_color(stream: &impl IsTerminal) -> bool {
    let color = COLOR.get().copied().unwrap_or_default();
    wants(color, stream.is_terminal(), |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

fn wants(color: Color, is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if is_set("NO_COLOR") => false,
        Color::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0") => true,
        Color::Auto => is_terminal && variable("TERM").is_none_or(|name| name != "dumb"),
    }
}

/// The widths that text is wrapped to: on a wider terminal, long lines are hard to read.
const WIDTHS: RangeInclusive<usize> = 40..=160;

/// The width of text on a stream: that of the terminal, if it is one.
fn width(stream: &impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).clamp(*WIDTHS.start(), *WIDTHS.end()),
        _ => report::WIDTH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_unless_somebody_says_otherwise() {
        let wanted = |color, is_terminal, set: &[(&str, &str)]| {
            wants(color, is_terminal, |name| Some(set.iter().find(|(known, _)| *known == name)?.1.to_owned()))
        };
        assert!(wanted(Color::Auto, true, &[("TERM", "xterm")]) && !wanted(Color::Auto, false, &[("TERM", "xterm")]));
        assert!(!wanted(Color::Auto, true, &[("TERM", "dumb")]));
        assert!(!wanted(Color::Auto, true, &[("NO_COLOR", "1")]) && wanted(Color::Auto, true, &[("NO_COLOR", "")]));
        assert!(wanted(Color::Auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!wanted(Color::Auto, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!wanted(Color::Auto, true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(wanted(Color::Always, false, &[("NO_COLOR", "1")]) && !wanted(Color::Never, true, &[]));
    }
}
