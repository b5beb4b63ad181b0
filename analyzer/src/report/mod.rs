//! How a judgement is shown: [`text`] to people, [`json`] to programs.
//!
//! Nothing is judged here, and nothing that stands in a trace reaches a terminal unchecked.

mod paint;
mod text;

use std::io::{self, Write};

use crate::judge::Judgement;

/// Writes a judgement for people, in colour if asked to.
pub fn text(judgement: &Judgement, out: &mut impl Write, color: bool) -> io::Result<()> {
    text::write(judgement, out, paint::Paint { color })
}

/// Writes a judgement for programs: one JSON object, whose fields are those of [`Judgement`].
pub fn json(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, judgement)?;
    writeln!(out)
}
