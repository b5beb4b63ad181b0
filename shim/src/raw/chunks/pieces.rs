//! The mapped pieces of a file, until their chunks are full.
//!
//! A piece is unmapped as a whole. A kernel that has large pages for files maps it by one, and where a part is
//! unmapped, it maps the rest again by small ones: one page fault for each 4 KiB that the other threads go on to
//! write, each of which takes the time of several calls.

use std::ops::Range;

use urscope_schema::trace::fxt::CHUNK_BYTES;

/// How many pieces are kept of which threads still have chunks: one that calls rarely keeps its own for long.
const PIECE_LIMIT: usize = 4;

/// The pieces, the latest first.
#[derive(Default)]
pub(super) struct Pieces([Piece; PIECE_LIMIT]);

/// A mapped piece.
#[derive(Clone, Default)]
struct Piece {
    /// Its addresses; empty for none.
    addresses: Range<usize>,
    /// A bit for each chunk that is full.
    full: u64,
}

impl Pieces {
    /// A piece has been mapped, of 64 chunks at most. Where there are too many, the chunks of the oldest one are
    /// unmapped one by one: those that are full now, and the others when they are.
    pub(super) fn add(&mut self, addresses: Range<usize>, unmap: impl FnMut(Range<usize>)) {
        self.0.rotate_right(1);
        let oldest = std::mem::replace(&mut self.0[0], Piece { addresses, full: 0 });
        oldest.chunks().filter_map(|(chunk, is_full)| is_full.then_some(chunk)).for_each(unmap);
    }

    /// The chunk that begins there is full, and nobody writes there any more.
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

    /// What is unmapped, in chunks: where it begins and ends.
    fn chunks(unmapped: &[Range<usize>]) -> Vec<Range<usize>> {
        unmapped.iter().map(|addresses| addresses.start / CHUNK..addresses.end / CHUNK).collect()
    }

    #[test]
    fn a_piece_is_unmapped_when_all_of_it_is_full() {
        let (mut pieces, mut unmapped) = (Pieces::default(), Vec::new());
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
        let (mut pieces, mut unmapped) = (Pieces::default(), Vec::new());
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
