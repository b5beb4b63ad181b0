//! The reader of traces: any bytes, in any pieces.
//!
//! It ends, says no more than there are lines, counts what it has read, and does not depend on the pieces.

use std::io::{BufReader, Read};

use urscope_schema::trace::chrome::read::Reader;
use urscope_schema::trace::{Record, Skipped};

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    let piece = data.first().map_or(1, |first| 1 + usize::from(*first) % 64);
    assert_eq!(whole, read(data, piece), "in pieces of {piece} it reads otherwise");
}

fn read(data: &[u8], piece: usize) -> (Vec<Result<Record, Skipped>>, bool) {
    let mut reader = Reader::new(BufReader::with_capacity(piece, data.take(u64::MAX)));
    let items: Vec<_> = reader.by_ref().map(|item| item.expect("memory can be read")).collect();
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(items.len() <= lines, "{} items of {lines} lines", items.len());
    assert_eq!(reader.offset(), data.len() as u64);
    for skipped in items.iter().filter_map(|item| item.as_ref().err()) {
        assert!(skipped.offset < data.len() as u64 && skipped.line as usize <= lines, "{skipped:?}");
        assert!(!skipped.why.to_string().is_empty());
    }
    (items, reader.closed())
}
