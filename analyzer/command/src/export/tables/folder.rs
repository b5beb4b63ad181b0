//! Writes tables to files that get their names when all of them are complete.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::{properties::WriterProperties, writer::SerializedFileWriter};
use parquet::{basic::Compression, errors::ParquetError, schema::parser::parse_message_type};
use serde_json::{Map, Value};
use tempfile::{Builder, NamedTempFile};
use urscope_analyzer::files;

use super::row::{Cell, Column, Row, Shape};
use super::{Form, columns};

/// How many rows are buffered until they are written as a group.
const GROUP: usize = 1 << 15;

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
    Parquet(Box<Parquet>),
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
                Form::Parquet => TableFile::Parquet(Box::new(Parquet::begin(file, &columns)?)),
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
    let (mut fields, mut names) = (Map::new(), columns.iter());
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

struct Parquet {
    writer: SerializedFileWriter<File>,
    columns: Vec<Waiting>,
    rows: usize,
}

/// The buffered cells of a column.
struct Waiting {
    shape: Shape,
    optional: bool,
    numbers: Vec<i64>,
    texts: Vec<ByteArray>,
    /// For an optional column, 0 for each empty cell and 1 for each other one (Parquet's definition levels).
    there: Vec<i16>,
}

impl Parquet {
    fn begin(file: File, columns: &[Column]) -> io::Result<Self> {
        let lines = columns.iter().map(|Column { name, shape, optional, .. }| {
            let often = if *optional { "OPTIONAL" } else { "REQUIRED" };
            match shape {
                Shape::Number => format!("{often} INT64 {name} (INTEGER(64,false));"),
                Shape::Text => format!("{often} BYTE_ARRAY {name} (STRING);"),
            }
        });
        let schema = format!("message urscope {{ {} }}", lines.collect::<String>());
        let schema = Arc::new(parse_message_type(&schema).map_err(failed)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?;
        let waiting = |column: &Column| Waiting {
            shape: column.shape,
            optional: column.optional,
            numbers: Vec::new(),
            texts: Vec::new(),
            there: Vec::new(),
        };
        Ok(Self { writer, columns: columns.iter().map(waiting).collect(), rows: 0 })
    }

    fn put(&mut self, row: &impl Row) -> io::Result<()> {
        let mut columns = self.columns.iter_mut();
        row.cells(&mut |cell| {
            let Some(column) = columns.next() else { return };
            if column.optional {
                column.there.push(i16::from(cell != Cell::Nothing));
            }
            match cell {
                Cell::Nothing => {}
                // Parquet stores unsigned numbers with the same bits.
                Cell::Number(number) => column.numbers.push(number as i64),
                Cell::Text(text) => column.texts.push(text.into_owned().into_bytes().into()),
            }
        });
        self.rows += 1;
        if self.rows == GROUP { self.flush().map_err(failed) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            let there = column.optional.then_some(column.there.as_slice());
            match column.shape {
                Shape::Number => writer.typed::<Int64Type>().write_batch(&column.numbers, there, None)?,
                Shape::Text => writer.typed::<ByteArrayType>().write_batch(&column.texts, there, None)?,
            };
            writer.close()?;
            column.numbers.clear();
            column.texts.clear();
            column.there.clear();
        }
        group.close()?;
        Ok(())
    }

    fn end(mut self) -> io::Result<File> {
        self.flush().map_err(failed)?;
        self.writer.into_inner().map_err(failed)
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
