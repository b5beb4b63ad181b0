//! How the command speaks: reports and answers to a stream or to files, errors to standard error, progress to a terminal.
//!
//! It decides about colour and formats, and computes nothing.

mod answer;
mod files;
mod judgement;
mod progress;

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use urscope_analyzer::{Judgement, report};

pub(crate) use answer::answer;
pub(crate) use files::{Output, OutputFile, Outputs, Unwritable, exemptions, named_here};
pub(crate) use judgement::{judgement, write_report};
pub(crate) use progress::analyze_watched;

use crate::arguments::Format;

/// Writes a judgement.
pub(crate) fn show(judgement: &Judgement, format: Format, out: &mut impl Write, color: bool) -> io::Result<()> {
    let _span = tracing::info_span!("rendering", ?format).entered();
    match format {
        Format::Text => report::text(judgement, out, color)?,
        Format::Json => report::json(judgement, out)?,
        Format::Sarif => report::sarif(judgement, &sources(), out)?,
        Format::Junit => report::junit(judgement, out)?,
        Format::Html => report::html(judgement, out)?,
        Format::Github => report::github(judgement, &sources(), out)?,
    }
    out.flush()
}

/// Below which directory source files are named relative to it: the checkout on GitHub, otherwise where we are.
fn sources() -> PathBuf {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|path| !path.is_empty()).map(PathBuf::from);
    workspace.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into())
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
