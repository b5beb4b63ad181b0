//! The mapped pieces of a file whose chunks are not all full.
//!
//! A piece is unmapped as a whole. A kernel may map it by a large page. If a part is unmapped, the rest gets small
//! pages, with a page fault for each 4 KiB that other threads write, which takes the time of several calls.

use std::ops::Range;

use urscope_schema::trace::fxt::CHUNK_BYTES;

/// The most pieces: a thread that calls rarely uses its chunk for long.
const PIECE_LIMIT: usize = 4;

/// The pieces, the latest first.
#[derive(Default)]
pub(super) struct Pieces([Piece; PIECE_LIMIT]);

#[derive(Clone, Default)]
struct Piece {
    /// Its addresses; empty for none.
    addresses: Range<usize>,
    /// A bit for each chunk that is full.
    full: u64,
}

impl Pieces {
    /// Adds a piece of at most 64 chunks. If there are too many pieces, the full chunks of the oldest one are unmapped
    /// now, and its others when they are full.
    pub(super) fn add(&mut self, addresses: Range<usize>, unmap: impl FnMut(Range<usize>)) {
        self.0.rotate_right(1);
        let oldest = std::mem::replace(&mut self.0[0], Piece { addresses, full: 0 });
        oldest.chunks().filter_map(|(chunk, is_full)| is_full.then_some(chunk)).for_each(unmap);
    }

    /// Marks the chunk at `start` as full: no thread writes to it any more.
    pub(super) fn mark_full(&mut self, start: usize, mut unmap: impl FnMut(Range<usize>)) {
        let Some(piece) = self.0.iter_mut().find(|piece| piece.addresses.contains(&start)) else {
            unmap(start..start + CHUNK_BYTES as usize);
            return;
        };
        piece.full |= 1 << ((start - piece.addresses.start) / CHUNK_BYTES as usize);
        if piece.chunks().all(|(_, is_full)| is_full) {
            unmap(std::mem::take(piece).addresses);
        }
    }
}

impl Piece {
    /// The chunks, and which ones are full.
    fn chunks(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let starts = self.addresses.clone().step_by(CHUNK_BYTES as usize);
        starts.enumerate().map(|(at, start)| (start..start + CHUNK_BYTES as usize, self.full >> at & 1 != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = CHUNK_BYTES as usize;

    /// The unmapped ranges, in chunks.
    fn chunks(unmapped: &[Range<usize>]) -> Vec<Range<usize>> {
        unmapped.iter().map(|addresses| addresses.start / CHUNK..addresses.end / CHUNK).collect()
    }

    #[test]
    fn a_piece_is_unmapped_when_all_of_it_is_full() {
        let mut pieces = Pieces::default();
        let mut unmapped = Vec::new();
        pieces.add(4 * CHUNK..68 * CHUNK, |addresses| unmapped.push(addresses));
        pieces.add(100 * CHUNK..104 * CHUNK, |addresses| unmapped.push(addresses));
        // The threads do not fill their chunks in the order in which they got them.
        for chunk in (4..68).filter(|chunk| *chunk != 66).chain([100, 101]) {
            pieces.mark_full(chunk * CHUNK, |addresses| unmapped.push(addresses));
        }
        assert_eq!(chunks(&unmapped), []);
        pieces.mark_full(66 * CHUNK, |addresses| unmapped.push(addresses));
        assert_eq!(chunks(&unmapped).first(), Some(&(4..68)));
        for chunk in [103, 102] {
            pieces.mark_full(chunk * CHUNK, |addresses| unmapped.push(addresses));
        }
        assert_eq!(chunks(&unmapped), [4..68, 100..104]);
    }

    #[test]
    fn a_slow_thread_keeps_no_more_than_its_chunk() {
        let mut pieces = Pieces::default();
        let mut unmapped = Vec::new();
        for piece in 0..=PIECE_LIMIT {
            assert_eq!(chunks(&unmapped), []);
            let first = 10 * piece;
            pieces.add(first * CHUNK..(first + 3) * CHUNK, |addresses| unmapped.push(addresses));
            // It has the second.
            for chunk in [first, first + 2].into_iter().filter(|_| piece < PIECE_LIMIT) {
                pieces.mark_full(chunk * CHUNK, |addresses| unmapped.push(addresses));
            }
        }
        assert_eq!(chunks(&unmapped), [0..1, 2..3]);
        pieces.mark_full(CHUNK, |addresses| unmapped.push(addresses));
        assert_eq!(chunks(&unmapped), [0..1, 2..3, 1..2]);
        pieces.mark_full(11 * CHUNK, |addresses| unmapped.push(addresses));
        assert_eq!(chunks(&unmapped), [0..1, 2..3, 1..2, 10..13]);
    }
}
