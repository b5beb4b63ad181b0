//! How the command speaks: judgements to a stream, complaints to standard error.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use urscope_analyzer::{Judgement, report};

use super::Format;

/// Writes a judgement.
pub(crate) fn show(judgement: &Judgement, format: Format, out: &mut impl Write, color: bool) -> io::Result<()> {
    match format {
        Format::Text => report::text(judgement, out, color)?,
        Format::Json => report::json(judgement, out)?,
    }
    out.flush()
}

/// Says what went wrong. That standard error is closed is no reason to stop.
pub(crate) fn complain(what: impl Display) {
    drop(writeln!(io::stderr(), "urscope: {what}"));
}

/// Whether what goes to a stream may be coloured: a person reads it and has not asked for plain text
/// (<https://no-color.org>).
pub(crate) fn wants_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
