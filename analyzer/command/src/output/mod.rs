//! The output of the command: reports and answers to a stream or to files, errors to standard error, progress to a terminal.
//!
//! This module chooses colours and formats. It must not compute anything about a run.

mod answer;
mod files;
mod judgement;
mod progress;

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use urscope_analyzer::{
    Judgement,
    report::{self, Paint},
};

pub(crate) use answer::answer;
pub(crate) use files::{Output, OutputFile, Outputs, Unwritable, exemptions, named_here};
pub(crate) use judgement::{judgement, write_report};
pub(crate) use progress::analyze_watched;

use crate::arguments::Format;

/// Writes a judgement in a format. `paint` says how text looks.
pub(crate) fn show(judgement: &Judgement, format: Format, out: &mut impl Write, paint: Paint) -> io::Result<()> {
    let _span = tracing::info_span!("rendering", ?format).entered();
    match format {
        Format::Text => report::text(judgement, out, paint)?,
        Format::Json => report::json(judgement, out)?,
        Format::Sarif => report::sarif(judgement, &sources(), out)?,
        Format::Junit => report::junit(judgement, out)?,
        Format::Html => report::html(judgement, out)?,
        Format::Github => report::github(judgement, &sources(), out)?,
    }
    out.flush()
}

/// The directory that paths of source files are relative to: the checkout on GitHub, otherwise the current directory.
fn sources() -> PathBuf {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|path| !path.is_empty()).map(PathBuf::from);
    workspace.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| "/".into())
}

/// Writes a message to standard error. Does nothing if standard error is closed.
pub(crate) fn complain(what: impl Display) {
    drop(writeln!(io::stderr(), "urscope: {what}"));
}

/// How text on a stream looks.
pub(crate) fn look(stream: &impl IsTerminal, all: bool) -> Paint {
    Paint { all, ..wants_color(stream).into() }
}

/// Whether the output to a stream is coloured: the stream is a terminal, and NO_COLOR is not set (<https://no-color.org>).
pub(crate) fn wants_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
