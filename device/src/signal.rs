//! What an event is: something that work promises to reach, and that others wait for.
//!
//! Under events and fences. A *flag* is signalled or not, and stays so until it is reset. A *counter* counts: each append
//! that signals it promises the next value, whoever waits from then on waits for that value, and it needs no reset; a
//! fresh one counts as reached. Must never be reached before the work that promised it is done.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// The two ways to be signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signalled or not.
    Flag,
    /// Counts the appends that signal it.
    Counter,
}

/// Begin and end of the work that reached a signal, in ticks of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// When the work began.
    pub start: u64,
    /// When it was done.
    pub end: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The value was reached.
    Reached,
    /// The deadline came first.
    TimedOut,
    /// The event was destroyed, and nothing in flight signals it: the value will never be reached.
    Abandoned,
}

/// A flag or a counter.
#[derive(Debug)]
pub(crate) struct Signal {
    kind: Kind,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    promised: u64,
    reached: u64,
    /// Promises that are still to be kept.
    pending: u64,
    stamps: Option<Stamps>,
    abandoned: bool,
}

impl Signal {
    /// A flag that is not signalled, or a counter at its beginning.
    pub(crate) fn new(kind: Kind) -> Self {
        let state = State { promised: 0, reached: 0, pending: 0, stamps: None, abandoned: false };
        Self { kind, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether this counts.
    pub(crate) fn is_counter(&self) -> bool {
        self.kind == Kind::Counter
    }

    /// The value that work which signals this must reach. For a counter, from now on this is what is waited for.
    pub(crate) fn promise(&self) -> u64 {
        let mut state = self.state.lock();
        state.pending += 1;
        match self.kind {
            Kind::Flag => 1,
            Kind::Counter => {
                state.promised += 1;
                state.promised
            }
        }
    }

    /// The value that a wait which begins now waits for.
    pub(crate) fn expected(&self) -> u64 {
        match self.kind {
            Kind::Flag => 1,
            Kind::Counter => self.state.lock().promised,
        }
    }

    /// The work that promised `value` is done.
    pub(crate) fn reach(&self, value: u64, stamps: Stamps) {
        let mut state = self.state.lock();
        state.reached = state.reached.max(value);
        state.pending = state.pending.saturating_sub(1);
        state.stamps = Some(stamps);
        self.changed.notify_all();
    }

    /// Takes a flag back. Nothing for a counter.
    pub(crate) fn reset(&self) {
        if self.kind == Kind::Flag {
            let mut state = self.state.lock();
            state.reached = 0;
            state.stamps = None;
        }
    }

    /// The event was destroyed. Once the work in flight that signals it is done, nobody can any more: whoever still
    /// waits then goes on.
    pub(crate) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// Whether a wait that begins now would end at once.
    pub(crate) fn is_reached(&self) -> bool {
        let expected = self.expected();
        self.state.lock().reached >= expected
    }

    /// When the last work that signalled this began and ended, once all that was promised is reached.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let state = self.state.lock();
        if state.reached >= state.promised { state.stamps } else { None }
    }

    /// Waits until `value` is reached, the deadline (`None` is never) comes, or the event is destroyed.
    pub(crate) fn wait(&self, value: u64, deadline: Option<Instant>) -> Outcome {
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

#[cfg(test)]
mod tests {
    use super::*;

    const STAMPS: Stamps = Stamps { start: 1, end: 2 };

    #[test]
    fn a_flag_is_signalled_until_it_is_reset() {
        let flag = Signal::new(Kind::Flag);
        assert!(!flag.is_reached());
        flag.reach(flag.promise(), STAMPS);
        assert!(flag.is_reached() && flag.stamps().is_some());
        flag.reset();
        assert!(!flag.is_reached() && flag.stamps().is_none());
    }

    #[test]
    fn a_counter_waits_for_the_latest_promise_and_needs_no_reset() {
        let counter = Signal::new(Kind::Counter);
        assert!(counter.is_reached());
        let first = counter.promise();
        assert!(!counter.is_reached());
        let second = counter.promise();
        counter.reach(first, STAMPS);
        assert!(!counter.is_reached());
        assert_eq!(counter.wait(first, None), Outcome::Reached);
        counter.reach(second, STAMPS);
        assert!(counter.is_reached());
    }

    #[test]
    fn a_wait_ends_when_the_event_is_abandoned() {
        let flag = Signal::new(Kind::Flag);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| flag.wait(1, None));
            flag.abandon();
            assert_eq!(waiter.join().unwrap(), Outcome::Abandoned);
        });
    }

    #[test]
    fn a_destroyed_event_is_still_waited_for_while_work_in_flight_signals_it() {
        let flag = Signal::new(Kind::Flag);
        let value = flag.promise();
        flag.abandon();
        assert_eq!(flag.wait(value, Some(Instant::now())), Outcome::TimedOut);
        flag.reach(value, STAMPS);
        assert_eq!(flag.wait(value, None), Outcome::Reached);
    }

    #[test]
    fn a_deadline_in_the_past_only_looks() {
        let flag = Signal::new(Kind::Flag);
        assert_eq!(flag.wait(1, Some(Instant::now())), Outcome::TimedOut);
        flag.reach(1, STAMPS);
        assert_eq!(flag.wait(1, Some(Instant::now())), Outcome::Reached);
    }
}
