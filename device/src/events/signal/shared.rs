//! The state of a signal that several processes see: a cell of a board.
//!
//! Words in shared memory, and a futex to sleep on, so that either side signals and the other wakes. There is no lock in
//! it that a dying process could take along, and whatever another process writes there, nothing worse comes of it than a
//! wait that ends too early or too late. A promise whose process dies before it is kept is never kept: a wait without a
//! deadline for it lasts for good, as with a device that lost the work; later promises are kept all the same. Must never
//! take a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Kind, Outcome, Stamps};
use crate::events::board::{Board, Cell};

/// A flag or a counter that is shared.
pub(super) struct Shared {
    board: Arc<Board>,
    cell: u32,
    /// The event was destroyed, in this process.
    abandoned: AtomicBool,
    /// Promises of this process that are still to be kept.
    pending: AtomicU64,
}

impl Shared {
    pub(super) fn new(board: Arc<Board>, cell: u32) -> Self {
        Self { board, cell, abandoned: AtomicBool::new(false), pending: AtomicU64::new(0) }
    }

    fn cell(&self) -> &Cell {
        self.board.cell(self.cell)
    }

    pub(super) fn promise(&self, kind: Kind) -> u64 {
        self.pending.fetch_add(1, Ordering::AcqRel);
        match kind {
            Kind::Flag => 1,
            Kind::Counter => self.cell().promised.fetch_add(1, Ordering::AcqRel).wrapping_add(1),
        }
    }

    pub(super) fn promised(&self) -> u64 {
        self.cell().promised.load(Ordering::Acquire)
    }

    pub(super) fn is_kept(&self, value: u64) -> bool {
        self.cell().kept(value).load(Ordering::Acquire) >= value
    }

    /// The value that was promised last, and the address of the number that tells when it is kept.
    pub(super) fn place(&self) -> (u64, usize) {
        let promised = self.promised();
        (promised, std::ptr::from_ref(self.cell().kept(promised)).addr())
    }

    pub(super) fn reach(&self, value: u64, stamps: Stamps) {
        let cell = self.cell();
        cell.start.store(stamps.start, Ordering::Relaxed);
        cell.end.store(stamps.end, Ordering::Relaxed);
        cell.kept(value).fetch_max(value, Ordering::AcqRel);
        self.pending.fetch_sub(1, Ordering::AcqRel);
        wake(&cell.sequence);
    }

    pub(super) fn reset(&self) {
        let cell = self.cell();
        cell.end.store(0, Ordering::Relaxed);
        cell.kept(1).store(0, Ordering::Release);
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        wake(&self.cell().sequence);
    }

    pub(super) fn stamps(&self) -> Option<Stamps> {
        let cell = self.cell();
        let stamps = Stamps { start: cell.start.load(Ordering::Relaxed), end: cell.end.load(Ordering::Relaxed) };
        (stamps.end > 0).then_some(stamps)
    }

    pub(super) fn wait(&self, value: u64, deadline: Option<Instant>) -> Outcome {
        let sequence = &self.cell().sequence;
        loop {
            // Read first: what changes after it makes the sleep end at once.
            let seen = sequence.load(Ordering::Acquire);
            if self.is_kept(value) {
                return Outcome::Reached;
            }
            if self.abandoned.load(Ordering::Acquire) && self.pending.load(Ordering::Acquire) == 0 {
                return Outcome::Abandoned;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Outcome::TimedOut;
            }
            sleep(sequence, seen, left);
        }
    }
}

/// Sleeps until the word is no longer `seen`, somebody wakes us, or the time is over. May end for no reason.
fn sleep(word: &AtomicU32, seen: u32, time: Option<Duration>) {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: FUTEX_WAIT(2) reads the word and the time, both of which outlive the call. Not private: the word is shared.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, time) };
}

/// Wakes all who sleep on the word, in all processes.
fn wake(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    // SAFETY: FUTEX_WAKE(2) uses the word's address only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
