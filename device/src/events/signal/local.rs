//! The state of a signal that only this process knows.
//!
//! Must never keep its lock while it waits.

use std::collections::BTreeSet;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::{Kind, Outcome, Stamps};

/// A flag or a counter of this process.
pub(super) struct Local {
    kind: Kind,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Of a counter: the last promise, and those that are still to be kept.
    promised: u64,
    open: BTreeSet<u64>,
    /// Of a flag: whether it is signalled, and how many will still do so.
    signalled: bool,
    pending: u64,
    /// When the work of the latest promise that was kept began and ended.
    stamps: Option<(u64, Stamps)>,
    abandoned: bool,
}

impl Local {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(super) fn promise(&self) -> u64 {
        let mut state = self.state.lock();
        match self.kind {
            Kind::Flag => {
                state.pending += 1;
                1
            }
            Kind::Counter => {
                state.promised += 1;
                let value = state.promised;
                state.open.insert(value);
                value
            }
        }
    }

    pub(super) fn promised(&self) -> u64 {
        self.state.lock().promised
    }

    pub(super) fn is_kept(&self, value: u64) -> bool {
        self.state.lock().is_kept(self.kind, value)
    }

    pub(super) fn reach(&self, value: u64, stamps: Stamps) {
        let mut state = self.state.lock();
        match self.kind {
            Kind::Flag => {
                state.signalled = true;
                state.pending = state.pending.saturating_sub(1);
            }
            Kind::Counter => {
                state.open.remove(&value);
            }
        }
        if state.stamps.is_none_or(|(latest, _)| latest <= value) {
            state.stamps = Some((value, stamps));
        }
        self.changed.notify_all();
    }

    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.signalled = false;
        state.stamps = None;
    }

    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.changed.notify_all();
    }

    pub(super) fn stamps(&self) -> Option<Stamps> {
        self.state.lock().stamps.map(|(_, stamps)| stamps)
    }

    pub(super) fn wait(&self, value: u64, deadline: Option<Instant>) -> Outcome {
        let mut state = self.state.lock();
        loop {
            if state.is_kept(self.kind, value) {
                return Outcome::Reached;
            }
            if state.abandoned && state.pending == 0 && state.open.is_empty() {
                return Outcome::Abandoned;
            }
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) => {
                    let late = self.changed.wait_until(&mut state, deadline).timed_out();
                    if late && !state.is_kept(self.kind, value) {
                        return Outcome::TimedOut;
                    }
                }
            }
        }
    }
}

impl State {
    fn is_kept(&self, kind: Kind, value: u64) -> bool {
        match kind {
            Kind::Flag => self.signalled,
            Kind::Counter => !self.open.contains(&value),
        }
    }
}
