//! The state of a signal that only this process uses.
//!
//! Must never hold its lock while it waits.

use std::collections::BTreeSet;

use parking_lot::{Condvar, Mutex};

use super::{Kind, Timestamps, WaitResult};
use crate::platform::{deadline::Deadline, process};

pub(super) struct Local {
    kind: Kind,
    state: Mutex<LocalState>,
    changed: Condvar,
}

#[derive(Default)]
struct LocalState {
    /// Of a counter: the last value, and the values that have not completed.
    submitted: u64,
    incomplete: BTreeSet<u64>,
    /// Of a flag: whether it is signalled, and how many signals are in flight.
    signalled: bool,
    pending: u64,
    /// Of a flag: how many resets were submitted to streams, and how many of them were performed.
    resets: u64,
    performed_resets: u64,
    /// The latest value that has completed, and when its work started and ended.
    timestamps: Option<(u64, Timestamps)>,
    abandoned: bool,
    /// Whether a wait or a query has found it incomplete since the last signal.
    awaited: bool,
}

impl Local {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(super) fn submit(&self) -> u64 {
        let mut state = self.state.lock();
        match self.kind {
            Kind::Flag => {
                state.pending += 1;
                1
            }
            Kind::Counter => {
                state.submitted += 1;
                let value = state.submitted;
                state.incomplete.insert(value);
                value
            }
        }
    }

    pub(super) fn submitted(&self) -> u64 {
        self.state.lock().submitted
    }

    pub(super) fn submit_reset(&self) {
        self.state.lock().resets += 1;
    }

    pub(super) fn resets(&self) -> u64 {
        self.state.lock().resets
    }

    pub(super) fn perform_reset(&self) {
        let mut state = self.state.lock();
        state.performed_resets += 1;
        state.signalled = false;
        state.timestamps = None;
    }

    /// Waits until as many resets were performed as were submitted before the wait, and then for a signal.
    pub(super) fn wait_after_resets(&self, resets: u64, deadline: Deadline) -> WaitResult {
        self.wait_until(deadline, |state| state.performed_resets >= resets && state.is_complete(Kind::Flag, 1))
    }

    pub(super) fn is_complete(&self, value: u64) -> bool {
        let mut state = self.state.lock();
        let complete = state.is_complete(self.kind, value);
        state.awaited |= !complete;
        complete
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.state.lock().awaited
    }

    pub(super) fn complete(&self, value: u64, timestamps: Timestamps) {
        let mut state = self.state.lock();
        match self.kind {
            Kind::Flag => {
                state.signalled = true;
                state.pending = state.pending.saturating_sub(1);
            }
            Kind::Counter => {
                state.incomplete.remove(&value);
            }
        }
        if state.timestamps.is_none_or(|(latest, _)| latest <= value) {
            state.timestamps = Some((value, timestamps));
        }
        state.awaited = false;
        self.changed.notify_all();
    }

    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.signalled = false;
        state.timestamps = None;
    }

    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.changed.notify_all();
    }

    pub(super) fn wake(&self) {
        // A wait that has checked already is asleep once the lock is free.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.state.lock().timestamps.map(|(_, timestamps)| timestamps)
    }

    pub(super) fn wait(&self, value: u64, deadline: Deadline) -> WaitResult {
        self.wait_until(deadline, |state| state.is_complete(self.kind, value))
    }

    fn wait_until(&self, deadline: Deadline, complete: impl Fn(&LocalState) -> bool) -> WaitResult {
        let mut wait = deadline.wait();
        let mut state = self.state.lock();
        loop {
            if complete(&state) {
                return WaitResult::Completed;
            }
            state.awaited = true;
            if state.abandoned && state.pending == 0 && state.incomplete.is_empty() || process::devices_are_lost() {
                return WaitResult::Abandoned;
            }
            if !wait.step(&self.changed, &mut state) {
                return WaitResult::TimedOut;
            }
        }
    }
}

impl LocalState {
    fn is_complete(&self, kind: Kind, value: u64) -> bool {
        match kind {
            Kind::Flag => self.signalled,
            Kind::Counter => !self.incomplete.contains(&value),
        }
    }
}
