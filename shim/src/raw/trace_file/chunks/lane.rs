//! The place in a chunk where a thread appends, and what its records there say to the next ones.
//!
//! A signal handler may append at any instruction. It finds a place behind the record that it interrupts, or no room.

use std::ops::Range;

use urscope_schema::trace::fxt::{CHUNK_BYTES, write};

use super::super::super::signals::sync::{self, AtomicU32, Cell, Ordering, compiler_fence};
use super::super::super::threads::variables::{Variable, places};
use super::WORD;

/// A position after every end.
const NO_POSITION: usize = usize::MAX / 2;

/// The next address and the end in a thread's chunk, and the number of the lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) next: usize,
    pub(super) end: usize,
    pub(super) lane: u32,
}

/// The position of a thread. Signal handlers use it at any instruction. It has no destructor.
pub(crate) struct Lane {
    pub(super) next: Cell<usize>,
    end: Cell<usize>,
    number: Cell<u32>,
    epoch: Cell<u32>,
    /// The address of the record that is being written; 0 for none.
    pub(super) writes: Cell<usize>,
    /// Whether the thread is in [`Chunks::renew`].
    pub(super) busy: Cell<bool>,
    /// The number of the call in the latest record, and its end, where the next record may use it. A handler that
    /// interrupts a record does not use them.
    latest: Cell<u64>,
    latest_end: Cell<usize>,
    /// Increases with each chunk: the bases are in this one.
    pub(super) turn: Cell<u32>,
    bases: [Cell<Base>; BASES],
}

/// The number of bases of a lane. Functions with successive numbers do not share one.
const BASES: usize = 16;

/// A record that later ones of its kind repeat, if it is the latest one of those that do not.
#[derive(Clone, Copy)]
pub(super) struct Base {
    /// [`Lane::turn`] when it was written.
    pub(super) turn: u32,
    /// [`Short::kind`](super::Short::kind).
    pub(super) kind: u16,
    /// Its position in the chunk.
    pub(super) at: u16,
}

/// Changes with the file, in a forked child.
pub(super) static EPOCH: AtomicU32 = AtomicU32::new(1);

// SAFETY: cells of numbers.
unsafe impl Variable for Lane {
    const PLACE: Range<usize> = places::LANE;
}

impl Lane {
    /// Takes the position: nothing can be appended until [`Self::set`].
    pub(super) fn take(&self) -> Position {
        let current = self.epoch.get() == EPOCH.load(Ordering::Relaxed);
        // One instruction: a handler appends before the position that is taken, or finds no room.
        let next = sync::exchange(&self.next, NO_POSITION);
        self.turn.set(self.turn.get().wrapping_add(1));
        let position = Position { next, end: self.end.get(), lane: self.number.get() };
        self.end.set(0);
        compiler_fence(Ordering::SeqCst);
        if current { position } else { Position::default() }
    }

    pub(super) fn set(&self, position: Position) {
        self.number.set(position.lane);
        self.epoch.set(EPOCH.load(Ordering::Relaxed));
        self.end.set(position.end);
        // In a forked child, the chunk may have the address of one of the parent's.
        self.latest_end.set(0);
        compiler_fence(Ordering::SeqCst);
        // Set last, so that handlers find no room before.
        self.next.set(position.next);
    }

    /// The number of the call whose record ends at `next`; 0 if there is none.
    #[inline]
    pub(super) fn before(&self, next: usize) -> u64 {
        let is_next = self.writes.get() == 0 && self.latest_end.get() == next;
        if is_next { self.latest.get() } else { 0 }
    }

    /// The base of a record of this kind, if it has one. Its chunk stays mapped until [`Self::writes`] is 0 again.
    #[inline]
    pub(super) fn base(&self, kind: u16) -> Option<&[u64]> {
        let Base { turn, kind: its, at } = self.bases.get(usize::from(kind) % BASES)?.get();
        if its != kind || turn != self.turn.get() || self.writes.get() != 0 {
            return None;
        }
        let start = self.start() + WORD * usize::from(at);
        self.writes.set(start);
        compiler_fence(Ordering::SeqCst);
        // A handler may have given this thread another chunk before.
        if turn != self.turn.get() {
            self.writes.set(0);
            return None;
        }
        let base = std::ptr::with_exposed_provenance::<u64>(start);
        // SAFETY: this thread has written a record there, in a chunk that stays mapped, and changes it no more.
        unsafe { Some(std::slice::from_raw_parts(base, write::length(*base))) }
    }

    /// The address of the chunk.
    fn start(&self) -> usize {
        self.end.get().wrapping_sub(CHUNK_BYTES as usize)
    }

    /// Claims the bytes from `next` to `to`, and stores the address in [`Self::writes`].
    #[inline]
    pub(super) fn claim(&self, next: usize, to: usize) -> Claim {
        if self.epoch.get() != EPOCH.load(Ordering::Relaxed) {
            return Claim::NoRoom;
        }
        let end = self.end.get();
        if to < next || to > end {
            return Claim::NoRoom;
        }
        if !sync::advance(&self.next, next, to) {
            return Claim::Interrupted;
        }
        let outer = self.writes.replace(next);
        compiler_fence(Ordering::SeqCst);
        // A handler in between may have given this thread another chunk. The claimed space is not in it, and may be
        // unmapped.
        if self.end.get() != end {
            self.writes.set(outer);
            return Claim::Interrupted;
        }
        Claim::Room(std::ptr::with_exposed_provenance_mut(next))
    }

    /// Notes the record of a call that has just been written there, while [`Self::writes`] is its address.
    #[inline]
    pub(super) fn note_call(&self, call: u64, at: usize, end: usize, base: Option<Base>) {
        self.latest.set(call);
        self.latest_end.set(end);
        if let Some(base) = base
            && let Some(place) = self.bases.get(usize::from(base.kind) % BASES)
        {
            place.set(Base { at: (at.wrapping_sub(self.start()) / WORD) as u16, ..base });
        }
    }
}

pub(super) enum Claim {
    Room(*mut u64),
    NoRoom,
    /// A handler has appended a record in between.
    Interrupted,
}
