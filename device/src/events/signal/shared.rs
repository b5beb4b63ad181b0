//! The state of a signal that several processes use: an event state on a shared event page.
//!
//! It consists of words in shared memory and a futex: either side signals, and the other wakes up. There is no lock
//! that a process could hold when it dies, and whatever another process writes there, the worst effect is a wait that
//! ends too early or too late. A value whose process dies before the work has ended never completes: a wait for it
//! without a deadline lasts forever, as with a device that has lost the work; later values complete all the same. Must
//! never take a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Kind, Timestamps, WaitResult};
use crate::events::page::{EventPage, EventState};
use crate::platform::deadline::{self, Deadline, Next};
use crate::platform::{futex, process};

/// A flag or a counter on a shared event page.
pub(super) struct Shared {
    page: Arc<EventPage>,
    index: u32,
    /// The event was destroyed in this process.
    abandoned: AtomicBool,
    /// Signals that this process has submitted and not completed.
    pending: AtomicU64,
}

impl Shared {
    pub(super) fn new(page: Arc<EventPage>, index: u32) -> Self {
        Self { page, index, abandoned: AtomicBool::new(false), pending: AtomicU64::new(0) }
    }

    fn state(&self) -> &EventState {
        self.page.state(self.index)
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
        let state = self.state();
        let is_complete = || state.completed(value).load(Ordering::SeqCst) >= value;
        if is_complete() {
            return true;
        }
        state.awaited.store(1, Ordering::SeqCst);
        // It may have completed in between, and the next signal is not awaited.
        let is_complete = is_complete();
        if is_complete {
            state.awaited.store(0, Ordering::SeqCst);
        }
        is_complete
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.state().awaited.load(Ordering::Relaxed) != 0
    }

    /// The value that was submitted last, and the address of the word that shows its completion.
    pub(super) fn counter_address(&self) -> (u64, usize) {
        let submitted = self.submitted();
        (submitted, std::ptr::from_ref(self.state().completed(submitted)).addr())
    }

    pub(super) fn complete(&self, value: u64, timestamps: Timestamps) {
        let state = self.state();
        state.start.store(timestamps.start, Ordering::Relaxed);
        state.end.store(timestamps.end, Ordering::Relaxed);
        state.completed(value).fetch_max(value, Ordering::AcqRel);
        state.awaited.store(0, Ordering::Relaxed);
        self.pending.fetch_sub(1, Ordering::AcqRel);
        futex::wake_all(&state.sequence);
    }

    pub(super) fn reset(&self) {
        let state = self.state();
        state.end.store(0, Ordering::Relaxed);
        state.completed(1).store(0, Ordering::Release);
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        futex::wake_all(&self.state().sequence);
    }

    pub(super) fn wake(&self) {
        futex::wake_all(&self.state().sequence);
    }

    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        let state = self.state();
        let timestamps =
            Timestamps { start: state.start.load(Ordering::Relaxed), end: state.end.load(Ordering::Relaxed) };
        (timestamps.end > 0).then_some(timestamps)
    }

    pub(super) fn wait(&self, value: u64, deadline: Deadline) -> WaitResult {
        let sequence = &self.state().sequence;
        let mut wait = deadline.wait();
        loop {
            // Read before the checks: a change after this makes the wait return at once.
            let seen = sequence.load(Ordering::Acquire);
            if self.is_complete(value) {
                return WaitResult::Completed;
            }
            let abandoned = self.abandoned.load(Ordering::Acquire) && self.pending.load(Ordering::Acquire) == 0;
            if abandoned || process::devices_are_lost() {
                return WaitResult::Abandoned;
            }
            match wait.next() {
                Next::Sleep(left) => futex::wait(sequence, seen, left),
                Next::Spin => deadline::pause(),
                Next::End => return WaitResult::TimedOut,
            }
        }
    }
}
