//! `urscope export`: one timeline of all processes in a file, or tables of all that happened in a folder.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
};

use flate2::{Compression, write::GzEncoder};
use urscope_analyzer::{Options, Verdict};

use super::{ExportArguments, ExportFormat, complain};
use crate::export::{
    self, ExportError, Form, Written,
    tables::{self, Rows},
};

/// Writes beside its place, and puts it there when it is whole.
pub(crate) fn export(arguments: &ExportArguments) -> ExitCode {
    let options = Options { symbols: arguments.traces.symbols.clone(), ..Options::default() };
    let path = &arguments.output;
    let (traces, format) = (&arguments.traces.paths, arguments.format.unwrap_or_else(|| ExportFormat::of(path)));
    let told = match format {
        ExportFormat::Chrome => write(arguments, &options, Form::Chrome, path).map(drawn),
        ExportFormat::Perfetto => write(arguments, &options, Form::Perfetto, path).map(drawn),
        ExportFormat::Parquet => tables::export(traces, &options, tables::Form::Parquet, path).map(listed),
        ExportFormat::Jsonl => tables::export(traces, &options, tables::Form::Jsonl, path).map(listed),
    };
    match told {
        Ok(told) => {
            drop(writeln!(io::stderr(), "urscope: {} has {told}", path.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(format_args!("{}: {error}", path.display()));
            Verdict::NotJudged.exit_code().into()
        }
    }
}

fn drawn(written: Written) -> String {
    let Written { calls, handles, openings, findings, .. } = written;
    let counts = format!("{calls} calls, {handles} handles, {openings} openings, {findings} findings");
    format!("{counts}; open it with https://ui.perfetto.dev")
}

fn listed(rows: Rows) -> String {
    let Rows { calls, handles, findings, processes } = rows;
    format!("{calls} calls, {handles} lives, {findings} findings, {processes} processes")
}

fn write(arguments: &ExportArguments, options: &Options, form: Form, path: &Path) -> Result<Written, ExportError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".urscope-export-").tempfile_in(folder)?;
    let written = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut out = buffered(GzEncoder::new(file.as_file(), Compression::default()));
        let written = export::export(&arguments.traces.paths, options, form, &mut out)?;
        whole(out)?.finish()?;
        written
    } else {
        let mut out = buffered(file.as_file());
        let written = export::export(&arguments.traces.paths, options, form, &mut out)?;
        whole(out)?;
        written
    };
    file.as_file().sync_data()?;
    let kept = file.persist(path).map_err(|error| error.error)?;
    readable(&kept)?;
    Ok(written)
}

fn buffered<W: Write>(out: W) -> BufWriter<W> {
    BufWriter::with_capacity(1 << 16, out)
}

fn whole<W: Write>(out: BufWriter<W>) -> io::Result<W> {
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// As a file that was created in its place would be: a temporary one is its owner's only.
fn readable(file: &File) -> io::Result<()> {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    rustix::fs::fchmod(file, rustix::fs::Mode::from_raw_mode(0o666) & !mask).map_err(Into::into)
}
