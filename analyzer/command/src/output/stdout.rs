//! Writes answers and judgements to standard output and to files, and a report file for `urscope merge`.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::{error::Error, path::Path, process::ExitCode};

use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use urscope_analyzer::report::{self, Paint};
use urscope_analyzer::{Judgement, Report};

use super::{OutputFile, Outputs, Shown, WritePage, detailed, look, named_here, opened, show, tell, written};
use crate::arguments::{AnswerArguments, Format, PlainFormat, VerdictArguments};

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

/// Writes a report file if a path is given; compressed if its name ends with `.gz`.
pub(crate) fn write_report(report: &Report, path: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let Some(path) = path else { return Ok(()) };
    let path = named_here(path);
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(OutputFile::open(&path)?.fill(|out| {
        if !packed {
            return report.write(out);
        }
        let mut out = BufWriter::new(GzEncoder::new(out, Compression::default()));
        report.write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
    })?)
}

/// Writes a judgement to all requested outputs, and returns its exit code. `view` is the command that shows the run,
/// with its page.
pub(crate) fn judgement(
    judgement: Judgement,
    arguments: &VerdictArguments,
    outputs: Outputs,
    view: Option<(&str, &WritePage<'_>)>,
) -> Result<ExitCode, Box<dyn Error>> {
    let mut judgement = Judgement { exit: arguments.exit_code(judgement.verdict), ..judgement };
    arguments.source.sources().add_to(&mut judgement);
    let judgement = &judgement;
    let judged = Shown { judgement, page: view.map(|(_, page)| page) };
    let format = outputs.stdout.unwrap_or(arguments.format);
    outputs.write(judged)?;
    let out = io::stdout();
    let paint = detailed(look(&out), arguments);
    let shown = show(judged, format, &mut BufWriter::new(out.lock()), paint);
    written(shown, "the report cannot be written to standard output")?;
    // A terminal shows the end of a long report.
    if let Some(happened) = judgement.happened().filter(|_| format == Format::Text && out.is_terminal()) {
        let view = view.map_or_else(String::new, |(view, _)| format!("; `{view}` shows it"));
        tell(format_args!("{happened}{view}"));
    }
    Ok(judgement.exit.into())
}
