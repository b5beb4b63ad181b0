//! Writes one table in the Parquet format.

use std::{fs::File, io, sync::Arc};

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::{properties::WriterProperties, writer::SerializedFileWriter};
use parquet::{basic::Compression, errors::ParquetError, schema::parser::parse_message_type};

use super::row::{Cell, Column, Row, Shape};

/// How many rows are buffered until they are written as a group.
const GROUP: usize = 1 << 15;

/// A table that is being written.
pub(super) struct ParquetFile {
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

impl ParquetFile {
    /// Begins a table in a file.
    pub(super) fn begin(file: File, columns: &[Column]) -> io::Result<Self> {
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

    /// Adds a row.
    pub(super) fn put(&mut self, row: &impl Row) -> io::Result<()> {
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

    /// Completes the table.
    pub(super) fn end(mut self) -> io::Result<File> {
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
