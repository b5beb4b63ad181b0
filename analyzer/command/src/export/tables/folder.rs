//! A folder of tables that is being written beside its place, and put there when it is whole.

use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::Compression,
    data_type::{BoolType, ByteArray, ByteArrayType, Int64Type},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::{
    Form, columns,
    row::{Cell, Column, Row, Shape},
};

/// How many rows are kept until they are written.
const GROUP: usize = 1 << 15;

/// All tables. After the first failure nothing more is written, and the end tells it.
pub(super) struct Folder {
    place: PathBuf,
    beside: TempDir,
    sheets: Vec<(String, Sheet)>,
    failed: Option<io::Error>,
}

enum Sheet {
    Parquet(Box<Parquet>),
    Lines { out: BufWriter<File>, columns: Vec<Column> },
}

impl Folder {
    /// Begins the tables that are to become `place`.
    pub(super) fn begin(place: &Path, form: Form) -> io::Result<Self> {
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = tempfile::Builder::new().prefix(".urscope-export-").tempdir_in(parent)?;
        let mut sheets = Vec::new();
        for (name, _, columns) in columns::all() {
            let name = format!("{name}.{}", form.extension());
            let file = File::create(beside.path().join(&name))?;
            let sheet = match form {
                Form::Parquet => Sheet::Parquet(Box::new(Parquet::begin(file, &columns)?)),
                Form::Jsonl => Sheet::Lines { out: BufWriter::with_capacity(1 << 16, file), columns },
            };
            sheets.push((name, sheet));
        }
        Ok(Self { place: place.to_owned(), beside, sheets, failed: None })
    }

    /// Writes a row.
    pub(super) fn put<R: Row>(&mut self, row: &R) {
        if self.failed.is_some() {
            return;
        }
        let Some((_, sheet)) = self.sheets.get_mut(R::TABLE) else { return };
        let written = match sheet {
            Sheet::Parquet(sheet) => sheet.put(row),
            Sheet::Lines { out, columns } => line(out, columns, row),
        };
        self.failed = written.err();
    }

    /// Puts the folder where it belongs; in one that is there, the tables of before are replaced.
    pub(super) fn end(self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut names = Vec::new();
        for (name, sheet) in self.sheets {
            let file = match sheet {
                Sheet::Parquet(sheet) => sheet.end()?,
                Sheet::Lines { out, .. } => out.into_inner().map_err(io::IntoInnerError::into_error)?,
            };
            file.sync_data()?;
            names.push(name);
        }
        fs::create_dir_all(&self.place)?;
        for name in names {
            fs::rename(self.beside.path().join(&name), self.place.join(&name))?;
        }
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
            Cell::Truth(truth) => truth.into(),
        };
        fields.extend(names.next().map(|column| (column.name.to_owned(), value)));
    });
    serde_json::to_writer(&mut *out, &fields)?;
    writeln!(out)
}

/// A table in columns.
struct Parquet {
    writer: SerializedFileWriter<File>,
    columns: Vec<Waiting>,
    rows: usize,
}

/// What waits to be written of a column.
struct Waiting {
    shape: Shape,
    optional: bool,
    numbers: Vec<i64>,
    texts: Vec<ByteArray>,
    truths: Vec<bool>,
    /// Of a column that may be empty: 1 where something stands.
    there: Vec<i16>,
}

impl Parquet {
    fn begin(file: File, columns: &[Column]) -> io::Result<Self> {
        let lines = columns.iter().map(|Column { name, shape, optional, .. }| {
            let often = if *optional { "OPTIONAL" } else { "REQUIRED" };
            match shape {
                Shape::Number => format!("{often} INT64 {name} (INTEGER(64,false));"),
                Shape::Text => format!("{often} BYTE_ARRAY {name} (STRING);"),
                Shape::Truth => format!("{often} BOOLEAN {name};"),
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
            truths: Vec::new(),
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
                // A column of unsigned numbers has the same bits.
                Cell::Number(number) => column.numbers.push(number as i64),
                Cell::Text(text) => column.texts.push(text.into_owned().into_bytes().into()),
                Cell::Truth(truth) => column.truths.push(truth),
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
                Shape::Truth => writer.typed::<BoolType>().write_batch(&column.truths, there, None)?,
            };
            writer.close()?;
            column.numbers.clear();
            column.texts.clear();
            column.truths.clear();
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
