//! Boards: shared pages that hold the state of events, one cell each.
//!
//! Beside the allocations in the same segments, and shared in the same way: with a slot that lets others in, and counts
//! them. The first cell is a head that says what the board is. Those who have a board open keep its pages, also when its
//! owner is gone. Must never hold anything but atomics that any process may write at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ffi::result::{Answer, ZeResult};
use crate::platform::log;
use crate::shared_memory::mapping::Mapping;
use crate::shared_memory::sealed::Sealed;
use crate::shared_memory::segment::{OpenSlot, Span};
use crate::shared_memory::source::Source;
use crate::shared_memory::{PAGE, exports};

/// Bytes of a cell.
const CELL: u64 = size_of::<Cell>() as u64;
/// So many promises of one event can be under way before a later one is taken for an earlier one.
const RING: usize = 32;

/// What a board is for. The number stands in its handles, where that of other memory is its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Purpose {
    /// One counter-based event.
    Event = 0x100,
    /// The events of a pool.
    Pool = 0x101,
}

/// What the owner says of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// How many cells there are.
    pub count: u32,
    /// The flags that event or pool was made with.
    pub flags: u32,
    /// Whether the events count.
    pub counters: bool,
}

/// The state of one event.
#[repr(C, align(64))]
pub(crate) struct Cell {
    /// Changes whenever something is signalled; what waiters sleep on.
    pub sequence: AtomicU32,
    /// The head's words. Only the first cell has them.
    words: [AtomicU32; 3],
    /// How many signals were promised.
    pub promised: AtomicU64,
    /// When the last work that signalled it began.
    pub start: AtomicU64,
    /// When it ended; 0 before that.
    pub end: AtomicU64,
    /// For each promise, in turn, the latest of those that share its place that was kept.
    ring: [AtomicU64; RING],
}

impl Cell {
    /// Where it stands that this promise was kept: then no less than its number is there.
    pub(crate) fn kept(&self, promise: u64) -> &AtomicU64 {
        let [first, ..] = &self.ring;
        self.ring.get(promise as usize % RING).unwrap_or(first)
    }
}

/// A board: made here, or opened.
pub(crate) struct Board {
    // In this order: the pages must be unmapped before they are given back.
    pages: Mapping,
    owner: Owner,
    purpose: Purpose,
    head: Head,
}

enum Owner {
    Own(Span),
    /// What counts this process in. Held for its drop.
    Opened {
        _slot: OpenSlot,
    },
}

impl Board {
    /// A board with all cells zero.
    pub(crate) fn new(purpose: Purpose, head: Head) -> Answer<Arc<Self>> {
        let span = Span::take(length(head.count))?;
        let board = Self { pages: span.map(PAGE)?, owner: Owner::Own(span), purpose, head };
        let words = [head.count, head.flags, u32::from(head.counters)];
        for (word, value) in board.at(0).words.iter().zip(words) {
            word.store(value, Ordering::Release);
        }
        Ok(Arc::new(board))
    }

    /// The board of a handle: `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle of such a board, and if it cannot be
    /// had. Intel's driver does not look at the bytes, and says this when it has failed to import what they say.
    pub(crate) fn open(purpose: Purpose, bytes: &[u8; 64]) -> Answer<Arc<Self>> {
        let fails = |why: &str| {
            log::note(&format!("cannot open an IPC handle of an {purpose:?}: {why}"));
            ZeResult::OUT_OF_DEVICE_MEMORY
        };
        // Nobody but us looks at these bytes, so the first four are as they were too.
        let sealed = Sealed::open(bytes)
            .filter(|sealed| sealed.kind == purpose as u16 && sealed.descriptor == sealed.exported)
            .ok_or_else(|| fails("the bytes are damaged or not a handle of ours"))?;
        let file = Source::of(&sealed).map_err(|why| fails(&why))?;
        if !sealed.size.is_multiple_of(PAGE as u64) || !file.holds(&sealed, sealed.size) {
            return Err(fails("it lies outside of its file"));
        }
        let slot = OpenSlot::open(file.as_fd(), u32::from(sealed.slot), sealed.identity)
            .map_err(|_| fails("its owner has destroyed it"))?;
        let pages = Mapping::shared(file.as_fd(), sealed.offset, sealed.size as usize, PAGE)?;
        let head = Head { count: 0, flags: 0, counters: false };
        let mut board = Self { pages, owner: Owner::Opened { _slot: slot }, purpose, head };
        let [count, flags, counters] = board.at(0).words.each_ref().map(|word| word.load(Ordering::Acquire));
        if length(count) > sealed.size {
            return Err(fails("its head is damaged"));
        }
        board.head = Head { count, flags, counters: counters != 0 };
        Ok(Arc::new(board))
    }

    /// A handle for another process: `INVALID_ARGUMENT` for what was itself opened from one.
    pub(crate) fn handle(&self) -> Answer<[u8; 64]> {
        let Owner::Own(span) = &self.owner else { return Err(ZeResult::INVALID_ARGUMENT) };
        exports::get(span);
        Ok(Sealed::of(span, self.purpose as u16, self.pages.length() as u64).seal())
    }

    /// Nobody shall open it any more. Those who have it open keep it.
    pub(crate) fn withdraw(&self) {
        if let Owner::Own(span) = &self.owner {
            exports::end(span.identity());
        }
    }

    /// Whether it was opened from a handle.
    pub(crate) fn is_opened(&self) -> bool {
        matches!(self.owner, Owner::Opened { .. })
    }

    /// What the owner says of it.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// A cell by its number. One that does not exist is the head, which no event uses.
    pub(crate) fn cell(&self, number: u32) -> &Cell {
        self.at(if number < self.head.count { u64::from(number) + 1 } else { 0 })
    }

    fn at(&self, place: u64) -> &Cell {
        let cell = (self.pages.base() + (place * CELL) as usize) as *const Cell;
        // SAFETY: the pages hold the head and `head.count` cells, aligned, for as long as the board lives; `place` is at
        // most that count, and cells are atomics throughout.
        unsafe { &*cell }
    }
}

/// Whole pages for a head and that many cells.
fn length(count: u32) -> u64 {
    ((u64::from(count) + 1) * CELL).next_multiple_of(PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_and_one_event_fit_on_a_page() {
        assert_eq!(length(1), PAGE as u64);
        assert!(CELL.is_multiple_of(align_of::<Cell>() as u64));
    }
}
