//! `urscope export`: writes a timeline of all processes to a file, or tables of the run to a directory.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{error::Error, fs::Permissions, os::unix::fs::PermissionsExt as _, process::ExitCode};

use clap::{Args, ValueEnum};
use flate2::{Compression, write::GzEncoder};
use urscope_analyzer::{Options, files};

use crate::export::tables::{self, Rows};
use crate::export::{self, ExportError, Form, Written};
use crate::{arguments::TraceArguments, input, output::complain};

/// Write a timeline of all processes for Perfetto, or tables of the run.
///
/// In a timeline, each call is a slice of its thread. Each handle from get to put and each opening from open to close
/// is a slice of its own. Arrows lead from a get to every open of its data and on to the close. Live handles, pinned
/// bytes and descriptors are counters. Findings are shown where they happened, with both call stacks.
///
/// The tables are calls, handles, findings and processes. They have the column `process` in common. A column whose name
/// ends with `_ns` holds a time in nanoseconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope export urscope-traces/app-1 -o run.json.gz\n  \
        urscope export urscope-traces/app-1 -o run.pftrace\n  \
        urscope export urscope-traces/app-1 --format parquet -o tables\n\n\
        Exit codes: 0 written, 2 not written.")]
pub(crate) struct ExportArguments {
    /// The format. [default: perfetto if the name of the file ends with .pftrace or .perfetto-trace (and .gz), else
    /// chrome]
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,

    /// The file to write, compressed if its name ends with .gz; for tables, the directory. The format may stand before
    /// it, as in `parquet=tables`.
    #[arg(short, long, value_name = "[FORMAT=]FILE|FOLDER")]
    output: String,

    /// Put the command lines of the processes into the tables. They may contain secrets.
    #[arg(long)]
    command_lines: bool,

    #[command(flatten)]
    traces: TraceArguments,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A timeline as a Chrome trace, which Perfetto and others read.
    Chrome,
    /// A timeline in Perfetto's own format, with exact times and addresses.
    Perfetto,
    /// Tables, for DuckDB, Spark, Polars and other readers of Parquet.
    Parquet,
    /// The same tables as JSON lines.
    Jsonl,
}

/// The extensions of timelines, and their formats.
const EXTENSIONS: [(&str, ExportFormat); 3] =
    [("json", ExportFormat::Chrome), ("pftrace", ExportFormat::Perfetto), ("perfetto-trace", ExportFormat::Perfetto)];

/// The format and the path that an output names, with the format that `--format` names. A name with an unknown
/// extension is refused, and so is one with that of another format.
fn target(output: &str, format: Option<ExportFormat>) -> Result<(ExportFormat, PathBuf), String> {
    let before =
        output.split_once('=').and_then(|(name, path)| Some((ExportFormat::from_str(name, false).ok()?, path)));
    let (asked, path) = match (before, format) {
        (Some((one, _)), Some(other)) if one != other => {
            return Err(format!("{output} names another format than --format; give one of the two"));
        }
        (Some((format, path)), _) => (Some(format), path),
        (None, format) => (format, output),
    };
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.is_empty() {
        return Err(format!("{output} names no file"));
    }
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy().into_owned());
    let known = extension.as_ref().map(|extension| EXTENSIONS.iter().find(|(known, _)| known == extension));
    match (asked, known) {
        (Some(asked), Some(Some(&(extension, other)))) if asked != other => {
            Err(format!("{path} has the extension .{extension}, which is not that of the format; name another file"))
        }
        (None, Some(None)) => Err(format!(
            "the extension of {path} is not known; use .json, .pftrace or .perfetto-trace (and .gz), or name the format with --format"
        )),
        (Some(format), _) | (None, Some(Some(&(_, format)))) => Ok((format, path.into())),
        (None, None) => Ok((ExportFormat::Chrome, path.into())),
    }
}

/// Writes a temporary file or directory next to the output, and renames it when it is complete.
pub(crate) fn export(arguments: &ExportArguments) -> Result<ExitCode, Box<dyn Error>> {
    let symbols = arguments.traces.symbols.clone();
    let options = Options { symbols, command_lines: arguments.command_lines, ..Options::default() };
    let (format, path) = target(&arguments.output, arguments.format)?;
    let traces = &input::chosen(&arguments.traces, false)?;
    let path = path.as_path();
    let exported = match format {
        ExportFormat::Chrome => write(traces, &options, Form::Chrome, path).map(timeline_summary),
        ExportFormat::Perfetto => write(traces, &options, Form::Perfetto, path).map(timeline_summary),
        ExportFormat::Parquet => tables::export(traces, &options, tables::Form::Parquet, path).map(table_summary),
        ExportFormat::Jsonl => tables::export(traces, &options, tables::Form::Jsonl, path).map(table_summary),
    };
    let summary = exported.map_err(|error| format!("{}: {error}", path.display()))?;
    complain(format_args!("{} has {summary}", path.display()));
    Ok(ExitCode::SUCCESS)
}

fn timeline_summary(written: Written) -> String {
    let Written { calls, handles, openings, findings, .. } = written;
    let counts = format!("{calls} calls, {handles} handles, {openings} openings, {findings} findings");
    format!("{counts}; open it with https://ui.perfetto.dev")
}

fn table_summary(rows: Rows) -> String {
    let Rows { calls, handles, findings, processes } = rows;
    format!("{calls} calls, {handles} lifetimes, {findings} findings, {processes} processes")
}

fn write(traces: &[PathBuf], options: &Options, form: Form, path: &Path) -> Result<Written, ExportError> {
    let folder = files::Folder::open(files::parent(path))?;
    // The mask of the process says who may read it.
    let mode = Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix(".urscope-export-").permissions(mode).tempfile_in(folder.by_descriptor())?;
    let written = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut out = buffered(GzEncoder::new(file.as_file(), Compression::default()));
        let written = export::export(traces, options, form, &mut out)?;
        finished(out)?.finish()?;
        written
    } else {
        let mut out = buffered(file.as_file());
        let written = export::export(traces, options, form, &mut out)?;
        finished(out)?;
        written
    };
    file.as_file().sync_data()?;
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    file.persist(folder.by_descriptor().join(name)).map_err(|error| error.error)?;
    Ok(written)
}

fn buffered<W: Write>(out: W) -> BufWriter<W> {
    BufWriter::with_capacity(1 << 16, out)
}

fn finished<W: Write>(out: BufWriter<W>) -> io::Result<W> {
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_selects_the_format() {
        let format = |output: &str| target(output, None).map(|(format, _)| format);
        for name in ["run.pftrace", "a/run.pftrace.gz", "run.perfetto-trace", "perfetto=run"] {
            assert_eq!(format(name), Ok(ExportFormat::Perfetto), "{name}");
        }
        for name in ["run.json", "run.json.gz", "a.pftrace/run", "pftrace", "chrome=a=b.json", "a=b"] {
            assert_eq!(format(name), Ok(ExportFormat::Chrome), "{name}");
        }
        assert_eq!(target("parquet=tables", None), Ok((ExportFormat::Parquet, "tables".into())));
        assert_eq!(target("run.d", Some(ExportFormat::Jsonl)), Ok((ExportFormat::Jsonl, "run.d".into())));
    }

    #[test]
    fn an_unknown_or_contradictory_extension_is_refused() {
        for (output, format, why) in [
            ("run.txt", None, "is not known"),
            ("run.txt.gz", None, "is not known"),
            ("", None, "names no file"),
            ("perfetto=run.json", None, "not that of the format"),
            ("run.pftrace.gz", Some(ExportFormat::Chrome), "not that of the format"),
            ("run.json", Some(ExportFormat::Parquet), "not that of the format"),
            ("chrome=run.json", Some(ExportFormat::Perfetto), "another format than --format"),
        ] {
            let error = target(output, format).unwrap_err();
            assert!(error.contains(why), "{output}: {error}");
        }
    }
}
