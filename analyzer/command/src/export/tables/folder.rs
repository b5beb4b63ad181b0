//! Writes tables to files that get their names when all of them are complete.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::{Builder, NamedTempFile};
use urscope_analyzer::files;

use super::row::{Cell, Column, Row};
use super::{Form, columns, parquet_file::ParquetFile};

/// All tables. After the first error nothing more is written, and [`end`](Self::end) returns the error.
pub(super) struct Folder {
    files: Vec<(String, NamedTempFile, TableFile)>,
    failed: Option<io::Error>,
    /// The destination. The files are in it by its descriptor.
    destination: files::Folder,
    made: Made,
}

/// The destination if it is new. It is removed unless the export succeeds.
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        drop(self.0.as_ref().map(fs::remove_dir));
    }
}

enum TableFile {
    Parquet(Box<ParquetFile>),
    Lines { out: BufWriter<File>, columns: Vec<Column> },
}

impl Folder {
    /// Creates the tables in `destination`, under other names.
    pub(super) fn begin(destination: &Path, form: Form) -> io::Result<Self> {
        let made = Made((!destination.exists()).then(|| destination.to_owned()));
        fs::create_dir_all(destination)?;
        let destination = files::Folder::open(destination)?;
        let extension = match form {
            Form::Parquet => "parquet",
            Form::Jsonl => "jsonl",
        };
        let mut files = Vec::new();
        for (name, _, columns) in columns::all() {
            let name = format!("{name}.{extension}");
            // The mask of the process says who may read it.
            let mode = Permissions::from_mode(0o666);
            let temporary =
                Builder::new().prefix(".urscope-export-").permissions(mode).tempfile_in(destination.by_descriptor())?;
            let file = temporary.as_file().try_clone()?;
            let table = match form {
                Form::Parquet => TableFile::Parquet(Box::new(ParquetFile::begin(file, &columns)?)),
                Form::Jsonl => TableFile::Lines { out: BufWriter::with_capacity(1 << 16, file), columns },
            };
            files.push((name, temporary, table));
        }
        Ok(Self { files, failed: None, destination, made })
    }

    pub(super) fn put<R: Row>(&mut self, row: &R) {
        if self.failed.is_some() {
            return;
        }
        let Some((_, _, table)) = self.files.get_mut(R::TABLE) else { return };
        let written = match table {
            TableFile::Parquet(table) => table.put(row),
            TableFile::Lines { out, columns } => line(out, columns, row),
        };
        self.failed = written.err();
    }

    /// Completes the tables and renames them to their destination. Existing tables there are replaced.
    pub(super) fn end(mut self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut complete = Vec::new();
        for (name, temporary, table) in self.files {
            let file = match table {
                TableFile::Parquet(table) => table.end()?,
                TableFile::Lines { out, .. } => out.into_inner().map_err(io::IntoInnerError::into_error)?,
            };
            file.sync_data()?;
            complete.push((name, temporary));
        }
        for (name, temporary) in complete {
            temporary.persist(self.destination.by_descriptor().join(name)).map_err(|error| error.error)?;
        }
        self.made.0 = None;
        Ok(())
    }
}

fn line(out: &mut impl io::Write, columns: &[Column], row: &impl Row) -> io::Result<()> {
    let mut fields = Map::new();
    let mut names = columns.iter();
    row.cells(&mut |cell| {
        let value = match cell {
            Cell::Nothing => Value::Null,
            Cell::Number(number) => number.into(),
            Cell::Text(text) => text.into_owned().into(),
        };
        fields.extend(names.next().map(|column| (column.name.to_owned(), value)));
    });
    serde_json::to_writer(&mut *out, &fields)?;
    writeln!(out)
}
