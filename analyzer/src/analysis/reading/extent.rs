//! Finds the end of the text in a file that is still being written.
//!
//! A writer maps its file and fills the unused part with spaces. A record counts once its line is complete.

use std::{fs::File, os::unix::fs::FileExt as _};

/// The number of bytes that are read at once.
const BLOCK: usize = 4096;

/// The end of the text in a file, in bytes: only spaces follow. It is known not to be before `from`.
pub(crate) fn end_of_text(file: &File, from: u64, size: u64) -> u64 {
    // The first blank block is between these bounds. A binary search finds it, because all blocks after it are blank too.
    let (mut low, mut high) = (from / BLOCK as u64, size.div_ceil(BLOCK as u64));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_blank::<BLOCK>(file, middle * BLOCK as u64) { high = middle } else { low = middle + 1 }
    }
    let last = low.saturating_sub(1) * BLOCK as u64;
    let length = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |index| index + 1);
    last + read::<BLOCK, _>(file, last, length) as u64
}

/// Whether the `LENGTH` bytes at `at` are spaces, as far as the file has them.
pub(crate) fn is_blank<const LENGTH: usize>(file: &File, at: u64) -> bool {
    read::<LENGTH, _>(file, at, |bytes| bytes.iter().all(|byte| *byte == b' '))
}

/// Passes at most `LENGTH` bytes of a file at `at` to `check`.
fn read<const LENGTH: usize, A>(file: &File, at: u64, check: impl FnOnce(&[u8]) -> A) -> A {
    let mut buffer = [0; LENGTH];
    let count = file.read_at(&mut buffer, at).unwrap_or(0);
    check(buffer.get(..count).unwrap_or_default())
}

/// The end of the last complete line in `from..to`, in bytes; `from` if there is none.
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
