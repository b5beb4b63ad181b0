//! How far a file that is still being written holds text.
//!
//! A writer maps its file and fills the rest with spaces; a record counts once its line is ended.

use std::{fs::File, os::unix::fs::FileExt as _};

/// How many bytes are looked at at once.
const BLOCK: usize = 4096;

/// Behind which byte of a file there is nothing but spaces. It is not before `from`.
pub(crate) fn end_of_text(file: &File, from: u64, size: u64) -> u64 {
    // The first block without a word lies between these, for what is behind it has none either.
    let (mut low, mut high) = (from / BLOCK as u64, size.div_ceil(BLOCK as u64));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_blank::<BLOCK>(file, middle * BLOCK as u64) { high = middle } else { low = middle + 1 }
    }
    let last = low.saturating_sub(1) * BLOCK as u64;
    let length = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |index| index + 1);
    last + read::<BLOCK, _>(file, last, length) as u64
}

pub(crate) fn is_blank<const LENGTH: usize>(file: &File, at: u64) -> bool {
    read::<LENGTH, _>(file, at, |bytes| bytes.iter().all(|byte| *byte == b' '))
}

/// Looks at a part of a file, as far as there is any.
fn read<const LENGTH: usize, A>(file: &File, at: u64, look: impl FnOnce(&[u8]) -> A) -> A {
    let mut buffer = [0; LENGTH];
    let count = file.read_at(&mut buffer, at).unwrap_or(0);
    look(buffer.get(..count).unwrap_or_default())
}

/// Behind which byte the last line of `from..to` ends; `from` if none does.
pub(crate) fn end_of_lines(file: &File, from: u64, to: u64) -> u64 {
    let mut high = to;
    while high > from {
        let low = high.saturating_sub(BLOCK as u64).max(from);
        let wanted = (high - low) as usize;
        let last = read::<BLOCK, _>(file, low, |bytes| {
            bytes.get(..wanted.min(bytes.len())).and_then(|bytes| bytes.iter().rposition(|byte| *byte == b'\n'))
        });
        if let Some(last) = last {
            return low + last as u64 + 1;
        }
        high = low;
    }
    from
}
