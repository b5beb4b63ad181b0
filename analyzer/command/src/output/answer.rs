//! Writes the answer to a question about a run to standard output.

use std::{
    fmt::Display,
    io::{self, BufWriter, Write as _},
    process::ExitCode,
};

use serde::Serialize;
use urscope_analyzer::{
    Verdict,
    report::{self, Paint},
};

use super::{complain, look};
use crate::arguments::PlainFormat;

/// The stream that an answer is written to.
type Out<'a> = BufWriter<io::StdoutLock<'a>>;

/// Writes an answer, or the error to standard error. The exit code is 0 or 2.
pub(crate) fn answer<A: Serialize>(
    format: PlainFormat,
    answer: Result<A, impl Display>,
    text: impl FnOnce(&A, &mut Out<'_>, Paint) -> io::Result<()>,
) -> ExitCode {
    let failed = Verdict::NotJudged.exit_code().into();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            complain(error);
            return failed;
        }
    };
    let stdout = io::stdout();
    let paint = look(&stdout, false);
    let mut out = BufWriter::new(stdout.lock());
    let _span = tracing::info_span!("rendering", ?format).entered();
    let written = match format {
        PlainFormat::Text => text(&answer, &mut out, paint),
        PlainFormat::Json => report::json(&answer, &mut out),
    };
    match written.and_then(|()| out.flush()) {
        // A reader that closes the pipe early has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("the answer cannot be written to standard output: {error}"));
            failed
        }
        _ => ExitCode::SUCCESS,
    }
}
