//! Writes the answer to a question about a run to standard output.

use std::{
    error::Error,
    io::{self, BufWriter, Write},
};

use serde::Serialize;
use urscope_analyzer::report::{self, Paint};

use super::{look, opened, written};
use crate::arguments::{AnswerArguments, PlainFormat};

pub(crate) fn answer<A: Serialize>(
    form: &AnswerArguments,
    answer: &A,
    text: impl Fn(&A, &mut dyn Write, Paint) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let (files, to_stdout) = opened(&form.output)?;
    let write = |format: PlainFormat, mut out: &mut dyn Write, paint: Paint| {
        let _span = tracing::info_span!("rendering", ?format).entered();
        match format {
            PlainFormat::Text => text(answer, out, paint)?,
            PlainFormat::Json => report::json(answer, &mut out)?,
        }
        out.flush()
    };
    for (format, file) in files {
        file.fill(|out| write(format, out, false.into()))?;
    }
    let stdout = io::stdout();
    let done = write(to_stdout.unwrap_or(form.format), &mut BufWriter::new(stdout.lock()), look(&stdout));
    written(done, "the answer cannot be written to standard output")
}
