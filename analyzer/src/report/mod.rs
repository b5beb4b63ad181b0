//! How a judgement is shown: [`text`] and [`html`] to people, [`json`] to programs, [`sarif`], [`junit`] and [`github`] to those that
//! collect what many tools found.
//!
//! Nothing is judged here, and nothing that stands in a trace reaches a terminal, a page or a log unchecked: every form but
//! JSON is made of a copy of the judgement in which no text steers anything, and JSON says such characters by number.

mod answers;
mod github;
mod html;
mod json;
mod junit;
mod paint;
mod sarif;
mod source;
mod text;

pub use answers::{bytes, heights};
pub use paint::since;
pub use text::who;

use std::{
    io::{self, Write},
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    analysis::{FoundFinding, Judgement},
    plain::plain_all,
    questions::{Diff, HandleHistory, Holders, Stats},
};

/// Writes a judgement for people, in colour if asked to.
pub fn text(judgement: &Judgement, out: &mut impl Write, color: bool) -> io::Result<()> {
    let mut text = String::new();
    text::write(&cleaned(judgement)?, &mut text, paint::Paint { color }).map_err(io::Error::other)?;
    guarded(&text, out)
}

/// The verdict in one line, for people.
pub fn headline(judgement: &Judgement, color: bool) -> io::Result<String> {
    Ok(text::headline(&cleaned(judgement)?, paint::Paint { color }))
}

/// All about one finding, for people.
pub fn finding(finding: &FoundFinding) -> io::Result<String> {
    Ok(text::told(&cleaned(finding)?))
}

/// Writes a judgement or an answer for programs: one JSON object, whose fields are those of its type. That of a judgement is
/// described in `docs/report.schema.json`.
pub fn json(what: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    json::write(what, out)
}

/// The same on one line, for a program that asked for it.
pub fn compact(what: &impl Serialize) -> io::Result<Vec<u8>> {
    json::compact(what)
}

/// Writes a judgement as a SARIF 2.1.0 log. Source files below `root` are named relative to it.
pub fn sarif(judgement: &Judgement, root: &Path, out: &mut impl Write) -> io::Result<()> {
    json::write(&sarif::log(&cleaned(judgement)?, root), out)
}

/// Writes a judgement as JUnit XML: a suite per process, a case per rule.
pub fn junit(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    junit::write(&cleaned(judgement)?, out)
}

/// Writes a judgement as a page that needs nothing but itself.
pub fn html(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    out.write_all(html::page(&cleaned(judgement)?).as_bytes())
}

/// Writes a judgement as workflow commands of GitHub Actions. Source files below `root` are named relative to it.
pub fn github(judgement: &Judgement, root: &Path, out: &mut impl Write) -> io::Result<()> {
    github::write(&cleaned(judgement)?, root, out)
}

/// Writes for people who holds what.
pub fn holders(answer: &Holders, out: &mut impl Write, color: bool) -> io::Result<()> {
    answered(answer, answers::holders, out, color)
}

/// Writes for people how a handle lived.
pub fn handle(answer: &HandleHistory, out: &mut impl Write, color: bool) -> io::Result<()> {
    answered(answer, answers::handle, out, color)
}

/// Writes the figures of a run for people.
pub fn stats(answer: &Stats, out: &mut impl Write, color: bool) -> io::Result<()> {
    answered(answer, answers::stats, out, color)
}

/// Writes for people what differs between two runs.
pub fn diff(answer: &Diff, out: &mut impl Write, color: bool) -> io::Result<()> {
    answered(answer, answers::diff, out, color)
}

/// Writes an answer for people, with nothing of it that steers anything.
fn answered<A: Serialize + DeserializeOwned>(
    answer: &A,
    write: fn(&A, &mut Vec<u8>, paint::Paint) -> io::Result<()>,
    out: &mut impl Write,
    color: bool,
) -> io::Result<()> {
    let mut text = Vec::new();
    write(&cleaned(answer)?, &mut text, paint::Paint { color })?;
    guarded(&String::from_utf8_lossy(&text), out)
}

/// A copy in which no text steers anything.
fn cleaned<T: Serialize + DeserializeOwned>(what: &T) -> io::Result<T> {
    plain_all(what).ok_or_else(|| io::Error::other("it cannot be written as JSON"))
}

/// Writes lines of which no runner of GitHub Actions takes one for a command, whatever name of a trace it begins with: they
/// may be printed there.
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
