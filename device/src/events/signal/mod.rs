//! What an event is: something that work promises to reach, and that others wait for.
//!
//! Under events and fences. A *flag* is signalled or not, and stays so until it is reset. A *counter* counts: each append
//! that signals it promises the next value, whoever waits from then on waits for that value, and it needs no reset; a
//! fresh one counts as reached. Work on different lists may keep later promises earlier; whoever waits for one waits for
//! just that one. The state lies in this process (`local`), or where other processes see it too (`shared`). Must never be
//! reached before the work that submitted it is done.

mod local;
mod shared;

use std::sync::Arc;
use std::time::Instant;

use crate::events::page::EventPage;
use local::Local;
use shared::Shared;

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
pub(crate) struct Timestamps {
    /// When the work began.
    pub start: u64,
    /// When it was done.
    pub end: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitResult {
    /// The value was reached.
    Completed,
    /// The deadline came first.
    TimedOut,
    /// The event was destroyed, and nothing in flight signals it: the value will never be reached.
    Abandoned,
}

/// A flag or a counter.
pub(crate) struct Signal {
    kind: Kind,
    state: State,
}

enum State {
    Local(Local),
    Shared(Shared),
}

/// Asks whichever state there is.
macro_rules! ask {
    ($signal:ident, $state:ident => $answer:expr) => {
        match &$signal.state {
            State::Local($state) => $answer,
            State::Shared($state) => $answer,
        }
    };
}

impl Signal {
    /// A flag that is not signalled, or a counter at its beginning.
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, state: State::Local(Local::new(kind)) }
    }

    /// The flag or counter in a state of a page, as it is.
    pub(crate) fn shared(kind: Kind, page: Arc<EventPage>, state: u32) -> Self {
        Self { kind, state: State::Shared(Shared::new(page, state)) }
    }

    /// Whether this counts.
    pub(crate) fn is_counter(&self) -> bool {
        self.kind == Kind::Counter
    }

    /// The value that work which signals this must reach. For a counter, from now on this is what is waited for.
    pub(crate) fn submit(&self) -> u64 {
        match (&self.state, self.kind) {
            (State::Local(state), _) => state.submit(),
            (State::Shared(state), kind) => state.submit(kind),
        }
    }

    /// The value that a wait which begins now waits for.
    pub(crate) fn wait_value(&self) -> u64 {
        match self.kind {
            Kind::Flag => 1,
            Kind::Counter => ask!(self, state => state.submitted()),
        }
    }

    /// The work that submitted `value` is done.
    pub(crate) fn complete(&self, value: u64, timestamps: Timestamps) {
        ask!(self, state => state.complete(value, timestamps));
    }

    /// Takes a flag back. Nothing for a counter.
    pub(crate) fn reset(&self) {
        if self.kind == Kind::Flag {
            ask!(self, state => state.reset());
        }
    }

    /// The event was destroyed. Once the work in flight that signals it is done, nobody can any more: whoever still
    /// waits then goes on. With a shared counter, somebody else has submitted what is waited for, and it is waited for.
    pub(crate) fn abandon(&self) {
        match (&self.state, self.kind) {
            (State::Local(state), _) => state.abandon(),
            (State::Shared(state), Kind::Flag) => state.abandon(),
            (State::Shared(_), Kind::Counter) => {}
        }
    }

    /// Whether a wait that begins now would end at once.
    pub(crate) fn is_signalled(&self) -> bool {
        let expected = self.wait_value();
        ask!(self, state => state.is_complete(expected))
    }

    /// When the last work that signalled this began and ended, once what is waited for is reached.
    pub(crate) fn timestamps(&self) -> Option<Timestamps> {
        if self.is_signalled() { ask!(self, state => state.timestamps()) } else { None }
    }

    /// Waits until `value` is reached, the deadline (`None` is never) comes, or the event is destroyed.
    pub(crate) fn wait(&self, value: u64, deadline: Option<Instant>) -> WaitResult {
        ask!(self, state => state.wait(value, deadline))
    }

    /// For a shared counter, the value that was submitted last, and the address of a number that is no less once it is
    /// reached.
    pub(crate) fn counter_address(&self) -> Option<(u64, usize)> {
        match &self.state {
            State::Shared(state) if self.is_counter() => Some(state.counter_address()),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::events::page::{Header, Purpose};

    const TIMESTAMPS: Timestamps = Timestamps { start: 1, end: 2 };

    #[test]
    fn a_flag_is_signalled_until_it_is_reset() {
        let flag = Signal::new(Kind::Flag);
        assert!(!flag.is_signalled());
        flag.complete(flag.submit(), TIMESTAMPS);
        assert!(flag.is_signalled() && flag.timestamps().is_some());
        flag.reset();
        assert!(!flag.is_signalled() && flag.timestamps().is_none());
    }

    #[test]
    fn a_counter_waits_for_the_latest_promise_and_needs_no_reset() {
        let counter = Signal::new(Kind::Counter);
        assert!(counter.is_signalled());
        let first = counter.submit();
        assert!(!counter.is_signalled());
        let second = counter.submit();
        counter.complete(first, TIMESTAMPS);
        assert!(!counter.is_signalled() && counter.timestamps().is_none());
        assert_eq!(counter.wait(first, None), WaitResult::Completed);
        counter.complete(second, TIMESTAMPS);
        assert!(counter.is_signalled() && counter.timestamps().is_some());
    }

    #[test]
    fn a_promise_that_is_overtaken_is_still_waited_for() {
        let header = Header { count: 1, flags: 0, counters: true };
        let page = EventPage::new(Purpose::Event, header).unwrap();
        for counter in [Signal::new(Kind::Counter), Signal::shared(Kind::Counter, page, 0)] {
            let (first, second) = (counter.submit(), counter.submit());
            counter.complete(second, TIMESTAMPS);
            assert!(counter.is_signalled());
            assert_eq!(counter.wait(first, Some(Instant::now())), WaitResult::TimedOut);
            counter.complete(first, TIMESTAMPS);
            assert_eq!(counter.wait(first, None), WaitResult::Completed);
        }
    }

    #[test]
    fn a_wait_ends_when_the_event_is_abandoned() {
        let flag = Signal::new(Kind::Flag);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| flag.wait(1, None));
            flag.abandon();
            assert_eq!(waiter.join().unwrap(), WaitResult::Abandoned);
        });
    }

    #[test]
    fn a_destroyed_event_is_still_waited_for_while_work_in_flight_signals_it() {
        let flag = Signal::new(Kind::Flag);
        let value = flag.submit();
        flag.abandon();
        assert_eq!(flag.wait(value, Some(Instant::now())), WaitResult::TimedOut);
        flag.complete(value, TIMESTAMPS);
        assert_eq!(flag.wait(value, None), WaitResult::Completed);
    }

    #[test]
    fn a_deadline_in_the_past_only_looks() {
        let flag = Signal::new(Kind::Flag);
        assert_eq!(flag.wait(1, Some(Instant::now())), WaitResult::TimedOut);
        flag.complete(1, TIMESTAMPS);
        assert_eq!(flag.wait(1, Some(Instant::now())), WaitResult::Completed);
    }
}
