//! How a judgement is shown.

use std::io::{self, Write};

use crate::judge::Judgement;

/// Writes a judgement for people.
pub fn text(judgement: &Judgement, out: &mut impl Write, _color: bool) -> io::Result<()> {
    writeln!(out, "urscope: {}", judgement.verdict.name())
}

/// Writes a judgement for programs: one JSON object.
pub fn json(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, judgement)?;
    writeln!(out)
}
