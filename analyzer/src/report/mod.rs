//! How a judgement is shown: [`text`] to people, [`json`] to programs.
//!
//! Nothing is judged here, and nothing that stands in a trace reaches a terminal unchecked.

mod answers;
mod paint;
mod text;

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    judge::Judgement,
    questions::{Holders, Stats, Story},
};

/// Writes a judgement for people, in colour if asked to.
pub fn text(judgement: &Judgement, out: &mut impl Write, color: bool) -> io::Result<()> {
    text::write(judgement, out, paint::Paint { color })
}

/// Writes a judgement or an answer for programs: one JSON object, whose fields are those of its type.
pub fn json(what: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, what)?;
    writeln!(out)
}

/// Writes for people who holds what.
pub fn holders(answer: &Holders, out: &mut impl Write, color: bool) -> io::Result<()> {
    answers::holders(answer, out, paint::Paint { color })
}

/// Writes for people how a handle lived.
pub fn handle(answer: &Story, out: &mut impl Write, color: bool) -> io::Result<()> {
    answers::handle(answer, out, paint::Paint { color })
}

/// Writes the figures of a run for people.
pub fn stats(answer: &Stats, out: &mut impl Write, color: bool) -> io::Result<()> {
    answers::stats(answer, out, paint::Paint { color })
}
