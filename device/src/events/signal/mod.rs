//! What an event is: something that work promises to reach, and that others wait for.
//!
//! Under events and fences. A *flag* is signalled or not, and stays so until it is reset. A *counter* counts: each append
//! that signals it promises the next value, whoever waits from then on waits for that value, and it needs no reset; a
//! fresh one counts as reached. Work on different lists may keep later promises earlier; whoever waits for one waits for
//! just that one. The state lies in this process (`local`), or where other processes see it too (`shared`). Must never be
//! reached before the work that promised it is done.

mod local;
mod shared;

use std::sync::Arc;
use std::time::Instant;

use crate::events::board::Board;
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

    /// The flag or counter in a cell of a board, as it is.
    pub(crate) fn shared(kind: Kind, board: Arc<Board>, cell: u32) -> Self {
        Self { kind, state: State::Shared(Shared::new(board, cell)) }
    }

    /// Whether this counts.
    pub(crate) fn is_counter(&self) -> bool {
        self.kind == Kind::Counter
    }

    /// The value that work which signals this must reach. For a counter, from now on this is what is waited for.
    pub(crate) fn promise(&self) -> u64 {
        match (&self.state, self.kind) {
            (State::Local(state), _) => state.promise(),
            (State::Shared(state), kind) => state.promise(kind),
        }
    }

    /// The value that a wait which begins now waits for.
    pub(crate) fn expected(&self) -> u64 {
        match self.kind {
            Kind::Flag => 1,
            Kind::Counter => ask!(self, state => state.promised()),
        }
    }

    /// The work that promised `value` is done.
    pub(crate) fn reach(&self, value: u64, stamps: Stamps) {
        ask!(self, state => state.reach(value, stamps));
    }

    /// Takes a flag back. Nothing for a counter.
    pub(crate) fn reset(&self) {
        if self.kind == Kind::Flag {
            ask!(self, state => state.reset());
        }
    }

    /// The event was destroyed. Once the work in flight that signals it is done, nobody can any more: whoever still
    /// waits then goes on. With a shared counter, somebody else has promised what is waited for, and it is waited for.
    pub(crate) fn abandon(&self) {
        match (&self.state, self.kind) {
            (State::Local(state), _) => state.abandon(),
            (State::Shared(state), Kind::Flag) => state.abandon(),
            (State::Shared(_), Kind::Counter) => {}
        }
    }

    /// Whether a wait that begins now would end at once.
    pub(crate) fn is_reached(&self) -> bool {
        let expected = self.expected();
        ask!(self, state => state.is_kept(expected))
    }

    /// When the last work that signalled this began and ended, once what is waited for is reached.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        if self.is_reached() { ask!(self, state => state.stamps()) } else { None }
    }

    /// Waits until `value` is reached, the deadline (`None` is never) comes, or the event is destroyed.
    pub(crate) fn wait(&self, value: u64, deadline: Option<Instant>) -> Outcome {
        ask!(self, state => state.wait(value, deadline))
    }

    /// For a shared counter, the value that was promised last, and the address of a number that is no less once it is
    /// reached.
    pub(crate) fn place(&self) -> Option<(u64, usize)> {
        match &self.state {
            State::Shared(state) if self.is_counter() => Some(state.place()),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::events::board::{Head, Purpose};

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
        assert!(!counter.is_reached() && counter.stamps().is_none());
        assert_eq!(counter.wait(first, None), Outcome::Reached);
        counter.reach(second, STAMPS);
        assert!(counter.is_reached() && counter.stamps().is_some());
    }

    #[test]
    fn a_promise_that_is_overtaken_is_still_waited_for() {
        let head = Head { count: 1, flags: 0, counters: true };
        let board = Board::new(Purpose::Event, head).unwrap();
        for counter in [Signal::new(Kind::Counter), Signal::shared(Kind::Counter, board, 0)] {
            let (first, second) = (counter.promise(), counter.promise());
            counter.reach(second, STAMPS);
            assert!(counter.is_reached());
            assert_eq!(counter.wait(first, Some(Instant::now())), Outcome::TimedOut);
            counter.reach(first, STAMPS);
            assert_eq!(counter.wait(first, None), Outcome::Reached);
        }
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
