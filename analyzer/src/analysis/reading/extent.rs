//! Finds the end of what was written to a file that is still being written.
//!
//! A writer maps its file and fills the unused part with spaces, or with unwritten words in a binary trace. A record in
//! a line counts once its line is complete.

use std::{collections::BTreeMap, fs::File, os::unix::fs::FileExt as _};

use urscope_schema::trace::fxt::{CHUNK_BYTES, MAGIC, UNWRITTEN, write::head};

/// The number of bytes that are read at once.
const BLOCK: usize = 4096;

/// The end of the text in a file, in bytes: only spaces follow. It is known not to be before `from`.
pub(crate) fn end_of_text(file: &File, from: u64, size: u64) -> u64 {
    // The first blank block is between these bounds. A binary search finds it, because all blocks after it are blank
    // too.
    let mut low = from / BLOCK as u64;
    let mut high = size.div_ceil(BLOCK as u64);
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

/// How much was written to a binary trace. Equal values mean that nothing was added in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkExtent {
    /// The number of chunks whose lanes are known.
    chunks: u64,
    /// The last chunk of each lane, and the number of bytes that were written to it.
    lanes: BTreeMap<u32, (u64, u64)>,
}

/// Whether a file is a binary trace.
pub(crate) fn is_binary(file: &File) -> bool {
    read_word(file, 0) == Some(MAGIC)
}

impl ChunkExtent {
    /// The extent of the file now, which was `self` before. Only the last chunk of each lane is read.
    pub(crate) fn now(mut self, file: &File, size: u64) -> Self {
        while (self.chunks + 1) * CHUNK_BYTES <= size {
            let start = self.chunks * CHUNK_BYTES;
            let lane = match read_word(file, start) {
                // The first chunk begins with the strings.
                _ if start == 0 => 0,
                Some(first) if first == head(0)[0] => read_word(file, start + 8).unwrap_or_default() as u32,
                _ => break,
            };
            self.lanes.insert(lane, (self.chunks, 0));
            self.chunks += 1;
        }
        for (chunk, written) in self.lanes.values_mut() {
            *written = read::<{ CHUNK_BYTES as usize }, _>(file, *chunk * CHUNK_BYTES, |bytes| {
                let words = bytes.as_chunks().0;
                words.iter().rposition(|word| u64::from_le_bytes(*word) != UNWRITTEN).map_or(0, |last| last as u64 + 1)
            });
        }
        self
    }
}

fn read_word(file: &File, at: u64) -> Option<u64> {
    read::<8, _>(file, at, |bytes| bytes.try_into().ok().map(u64::from_le_bytes))
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
