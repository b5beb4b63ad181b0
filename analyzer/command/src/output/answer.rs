//! Writes the answer to a question about a run to standard output.

use std::{
    fmt::Display,
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use serde::Serialize;
use urscope_analyzer::{
    Verdict,
    report::{self, Paint},
};

use super::{complain, look, opened};
use crate::arguments::{AnswerArguments, PlainFormat};

/// Writes an answer, or the error to standard error. The exit code is 0 or 2.
pub(crate) fn answer<A: Serialize>(
    form: &AnswerArguments,
    answer: Result<A, impl Display>,
    text: impl Fn(&A, &mut dyn Write, Paint) -> io::Result<()>,
) -> ExitCode {
    let failed = |error: &dyn Display| {
        complain(error);
        ExitCode::from(Verdict::NotJudged.exit_code())
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return failed(&error),
    };
    let (files, to_stdout) = match opened(&form.output) {
        Ok(outputs) => outputs,
        Err(error) => return failed(&error),
    };
    let written = |format: PlainFormat, mut out: &mut dyn Write, paint: Paint| {
        let _span = tracing::info_span!("rendering", ?format).entered();
        match format {
            PlainFormat::Text => text(&answer, out, paint)?,
            PlainFormat::Json => report::json(&answer, &mut out)?,
        }
        out.flush()
    };
    for (format, file) in files {
        if let Err(error) = file.fill(|out| written(format, out, false.into())) {
            return failed(&error);
        }
    }
    let stdout = io::stdout();
    let paint = look(&stdout);
    match written(to_stdout.unwrap_or(form.format), &mut BufWriter::new(stdout.lock()), paint) {
        // A reader that closes the pipe early has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            failed(&format_args!("the answer cannot be written to standard output: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}
