//! `urscope export`: one timeline of all processes in a file.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
};

use flate2::{Compression, write::GzEncoder};
use urscope_analyzer::{
    Options, Verdict,
    export::{self, ExportError, Written},
};

use super::{ExportArguments, complain};

/// Writes the timeline beside its place, and puts it there when it is whole.
pub(crate) fn export(arguments: &ExportArguments) -> ExitCode {
    let options = Options { symbols: arguments.traces.symbols.clone(), ..Options::default() };
    let path = &arguments.output;
    let written = match write(arguments, &options, path) {
        Ok(written) => written,
        Err(error) => {
            complain(format_args!("{}: {error}", path.display()));
            return Verdict::NotJudged.exit_code().into();
        }
    };
    let Written { calls, handles, openings, findings, .. } = written;
    let counts = format!("{calls} calls, {handles} handles, {openings} openings, {findings} findings");
    let path = path.display();
    drop(writeln!(io::stderr(), "urscope: {path} has {counts}; open it with https://ui.perfetto.dev"));
    ExitCode::SUCCESS
}

fn write(arguments: &ExportArguments, options: &Options, path: &Path) -> Result<Written, ExportError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".urscope-export-").tempfile_in(folder)?;
    let out = BufWriter::with_capacity(1 << 16, file.as_file());
    let written = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut out = GzEncoder::new(out, Compression::default());
        let written = export::export(&arguments.traces.paths, options, &mut out)?;
        finish(out.finish()?)?;
        written
    } else {
        let mut out = out;
        let written = export::export(&arguments.traces.paths, options, &mut out)?;
        finish(out)?;
        written
    };
    let kept = file.persist(path).map_err(|error| error.error)?;
    readable(&kept)?;
    Ok(written)
}

fn finish(out: BufWriter<&File>) -> io::Result<()> {
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
}

/// As a file that was created in its place would be: a temporary one is its owner's only.
fn readable(file: &File) -> io::Result<()> {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    rustix::fs::fchmod(file, rustix::fs::Mode::from_raw_mode(0o666) & !mask).map_err(Into::into)
}
