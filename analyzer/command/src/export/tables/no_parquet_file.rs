//! In the place of [`parquet_file`](super) in a build without the feature `parquet`: tables in this format are refused.

use std::{fs::File, io};

use super::row::{Column, Row};

pub(super) enum ParquetFile {}

impl ParquetFile {
    pub(super) fn begin(_file: File, _columns: &[Column]) -> io::Result<Self> {
        Err(io::Error::other("this urscope was built without the cargo feature `parquet`; use --format jsonl"))
    }

    pub(super) fn put(&mut self, _row: &impl Row) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn end(self) -> io::Result<File> {
        match self {}
    }
}
