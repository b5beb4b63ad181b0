//! Writes judgements and answers: [`text`] and [`html`] for people, [`json`] for programs, [`sarif`], [`junit`] and
//! [`github`] for systems that collect the results of tools.
//!
//! This module must not judge, and must not write text of a trace unchecked to a terminal, a page or a log. Every form
//! but JSON is written from a copy of the judgement in which unprintable characters are replaced. JSON escapes such
//! characters.

mod answers;
mod brief;
mod github;
mod html;
mod json;
mod junit;
mod paint;
mod sarif;
mod source;
mod spans;
mod text;

pub use answers::heights;
pub use html::Page;
pub use paint::{Paint, WIDTH, wrapped};

use std::io::{self, Write};
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

use crate::analysis::{FoundFinding, Judgement};
use crate::plain::plain_all;
use crate::questions::{CallLine, CallsBy, Diff, HandleHistory, Holders, HoldersBy, Stats};

/// Writes a judgement as text.
pub fn text(judgement: &Judgement, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    let mut text = String::new();
    text::write(&cleaned(judgement)?, &mut text, paint.into()).map_err(io::Error::other)?;
    guarded(&text, out)
}

/// The most severe finding as one line of text with its place, if findings make the verdict.
pub fn happened(judgement: &Judgement, paint: impl Into<Paint>) -> io::Result<Option<String>> {
    Ok(text::happened(&cleaned(judgement)?, paint.into()))
}

/// The verdict as one line of text, in colour if `color` is set.
pub fn headline(judgement: &Judgement, color: bool) -> io::Result<String> {
    Ok(text::headline(&cleaned(judgement)?, color.into()))
}

/// One finding as text, with all details.
pub fn finding(finding: &FoundFinding) -> io::Result<String> {
    Ok(text::details(&cleaned(finding)?))
}

/// Writes a judgement or an answer as one JSON object with the fields of its type. `docs/report.schema.json` is the
/// schema of a judgement.
pub fn json(what: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    json::write(what, out)
}

/// A judgement or an answer as JSON on one line.
pub fn compact(what: &impl Serialize) -> io::Result<Vec<u8>> {
    json::compact(what)
}

/// Writes a judgement as a SARIF 2.1.0 log. Source files below `root` are named relative to it.
pub fn sarif(judgement: &Judgement, root: &Path, out: &mut impl Write) -> io::Result<()> {
    json::write(&sarif::log(&cleaned(judgement)?, root), out)
}

/// Writes a judgement as JUnit XML: a suite per program and rank, a case per rule.
pub fn junit(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    junit::write(&cleaned(judgement)?, out)
}

/// Writes a judgement as a self-contained HTML page without scripts.
pub fn html(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    out.write_all(html::report(&cleaned(judgement)?, None).as_bytes())
}

/// Writes the same for paper and for browsers without scripts, with a page that other browsers show.
pub fn html_with(page: Page<'_>, judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    out.write_all(html::report(&cleaned(judgement)?, Some(page)).as_bytes())
}

/// Writes a judgement as workflow commands of GitHub Actions. Source files below `root` are named relative to it.
pub fn github(judgement: &Judgement, root: &Path, out: &mut impl Write) -> io::Result<()> {
    github::write(&cleaned(judgement)?, root, out)
}

/// Writes what is held as text.
pub fn holders(answer: &Holders, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::holders, out, paint.into())
}

/// Writes what is held in parts as text.
pub fn holders_by(answer: &HoldersBy, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::holders_by, out, paint.into())
}

/// Writes the calls of a run in parts as text.
pub fn calls_by(answer: &CallsBy, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::calls_by, out, paint.into())
}

/// Writes the history of a handle as text.
pub fn handle(answer: &HandleHistory, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::handle, out, paint.into())
}

/// One call as a line of text, without the end of the line.
pub fn call(line: &CallLine, paint: impl Into<Paint>) -> String {
    answers::call(line, paint.into())
}

/// Writes the statistics of a run as text.
pub fn stats(answer: &Stats, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::stats, out, paint.into())
}

/// Writes the differences between two runs as text.
pub fn diff(answer: &Diff, out: &mut impl Write, paint: impl Into<Paint>) -> io::Result<()> {
    answered(answer, answers::diff, out, paint.into())
}

/// Writes an answer as text, with unprintable characters replaced.
fn answered<A: Serialize + DeserializeOwned>(
    answer: &A,
    write: fn(&A, &mut Vec<u8>, Paint) -> io::Result<()>,
    out: &mut impl Write,
    paint: Paint,
) -> io::Result<()> {
    let mut text = Vec::new();
    write(&cleaned(answer)?, &mut text, paint)?;
    guarded(&String::from_utf8_lossy(&text), out)
}

/// A copy in which unprintable characters are replaced.
fn cleaned<T: Serialize + DeserializeOwned>(what: &T) -> io::Result<T> {
    plain_all(what).ok_or_else(|| io::Error::other("it cannot be written as JSON"))
}

/// Writes lines so that a runner of GitHub Actions takes none for a workflow command, even if it begins with a name
/// from a trace.
fn guarded(text: &str, out: &mut impl Write) -> io::Result<()> {
    text.lines().try_for_each(|line| match line.trim_start().get(..2) {
        Some("::" | "##") => {
            let (space, command) = line.split_at(line.len() - line.trim_start().len());
            let (sign, rest) = command.split_at(1);
            writeln!(out, "{space}{sign}\u{fffd}{rest}")
        }
        _ => writeln!(out, "{line}"),
    })
}
