//! The state of a signal that only this process knows.
//!
//! Must never be waited for with its lock held elsewhere: each method takes it for itself.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::{Kind, Outcome, Stamps};

/// A flag or a counter of this process.
#[derive(Default)]
pub(super) struct Local {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    promised: u64,
    reached: u64,
    /// Promises that are still to be kept.
    pending: u64,
    stamps: Option<Stamps>,
    abandoned: bool,
}

impl Local {
    pub(super) fn promise(&self, kind: Kind) -> u64 {
        let mut state = self.state.lock();
        state.pending += 1;
        match kind {
            Kind::Flag => 1,
            Kind::Counter => {
                state.promised += 1;
                state.promised
            }
        }
    }

    pub(super) fn promised(&self) -> u64 {
        self.state.lock().promised
    }

    pub(super) fn reached(&self) -> u64 {
        self.state.lock().reached
    }

    pub(super) fn reach(&self, value: u64, stamps: Stamps) {
        let mut state = self.state.lock();
        state.reached = state.reached.max(value);
        state.pending = state.pending.saturating_sub(1);
        state.stamps = Some(stamps);
        self.changed.notify_all();
    }

    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.reached = 0;
        state.stamps = None;
    }

    pub(super) fn abandon(&self, _kind: Kind) {
        self.state.lock().abandoned = true;
        self.changed.notify_all();
    }

    pub(super) fn stamps(&self) -> Option<Stamps> {
        let state = self.state.lock();
        if state.reached >= state.promised { state.stamps } else { None }
    }

    pub(super) fn wait(&self, value: u64, deadline: Option<Instant>) -> Outcome {
        let mut state = self.state.lock();
        loop {
            if state.reached >= value {
                return Outcome::Reached;
            }
            if state.abandoned && state.pending == 0 {
                return Outcome::Abandoned;
            }
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) => {
                    if self.changed.wait_until(&mut state, deadline).timed_out() && state.reached < value {
                        return Outcome::TimedOut;
                    }
                }
            }
        }
    }
}
