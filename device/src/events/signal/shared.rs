//! The state of a signal that several processes see: a state of a page.
//!
//! Words in shared memory, and a futex to sleep on, so that either side signals and the other wakes. There is no lock in
//! it that a dying process could take along, and whatever another process writes there, nothing worse comes of it than a
//! wait that ends too early or too late. A value whose process dies before it is kept is never kept: a wait without a
//! deadline for it lasts for good, as with a device that lost the work; later promises are kept all the same. Must never
//! take a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Kind, Timestamps, WaitResult};
use crate::events::page::{EventPage, EventState};

/// A flag or a counter that is shared.
pub(super) struct Shared {
    page: Arc<EventPage>,
    state: u32,
    /// The event was destroyed, in this process.
    abandoned: AtomicBool,
    /// Promises of this process that are still to be kept.
    pending: AtomicU64,
}

impl Shared {
    pub(super) fn new(page: Arc<EventPage>, state: u32) -> Self {
        Self { page, state, abandoned: AtomicBool::new(false), pending: AtomicU64::new(0) }
    }

    fn state(&self) -> &EventState {
        self.page.state(self.state)
    }

    pub(super) fn submit(&self, kind: Kind) -> u64 {
        self.pending.fetch_add(1, Ordering::AcqRel);
        match kind {
            Kind::Flag => 1,
            Kind::Counter => self.state().submitted.fetch_add(1, Ordering::AcqRel).wrapping_add(1),
        }
    }

    pub(super) fn submitted(&self) -> u64 {
        self.state().submitted.load(Ordering::Acquire)
    }

    pub(super) fn is_complete(&self, value: u64) -> bool {
        self.state().completed_value(value).load(Ordering::Acquire) >= value
    }

    /// The value that was submitted last, and the address of the number that tells when it is kept.
    pub(super) fn counter_address(&self) -> (u64, usize) {
        let submitted = self.submitted();
        (submitted, std::ptr::from_ref(self.state().completed_value(submitted)).addr())
    }

    pub(super) fn complete(&self, value: u64, timestamps: Timestamps) {
        let state = self.state();
        state.start.store(timestamps.start, Ordering::Relaxed);
        state.end.store(timestamps.end, Ordering::Relaxed);
        state.completed_value(value).fetch_max(value, Ordering::AcqRel);
        self.pending.fetch_sub(1, Ordering::AcqRel);
        wake(&state.sequence);
    }

    pub(super) fn reset(&self) {
        let state = self.state();
        state.end.store(0, Ordering::Relaxed);
        state.completed_value(1).store(0, Ordering::Release);
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        wake(&self.state().sequence);
    }

    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        let state = self.state();
        let timestamps =
            Timestamps { start: state.start.load(Ordering::Relaxed), end: state.end.load(Ordering::Relaxed) };
        (timestamps.end > 0).then_some(timestamps)
    }

    pub(super) fn wait(&self, value: u64, deadline: Option<Instant>) -> WaitResult {
        let sequence = &self.state().sequence;
        loop {
            // Read first: what changes after it makes the sleep end at once.
            let seen = sequence.load(Ordering::Acquire);
            if self.is_complete(value) {
                return WaitResult::Completed;
            }
            if self.abandoned.load(Ordering::Acquire) && self.pending.load(Ordering::Acquire) == 0 {
                return WaitResult::Abandoned;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return WaitResult::TimedOut;
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
