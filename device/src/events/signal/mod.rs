//! The state of an event: work submits a signal and completes it later, which ends the waits for it.
//!
//! Events and fences have one. A *flag* is signalled or not, and stays signalled until it is reset. A
//! *counter* counts: each append that signals it submits the next value, a wait that starts from then
//! on waits for that value, and no reset is needed; a new counter is signalled. Work on different lists
//! may complete values out of order; a wait is for one value only. The state lies in this process
//! (`local`), in memory that other processes see too (`shared`), or in memory of the application
//! (`external`). Must never complete a value before the work that submitted it has ended.

mod external;
mod local;
mod shared;

use std::sync::Arc;

use crate::events::page::EventPage;
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::{clock, deadline::Deadline};
pub(crate) use external::Words;
use local::Local;
use shared::Shared;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signalled or not.
    Flag,
    /// Counts the appends that signal it.
    Counter,
}

/// Start and end of the work that completed a signal, in nanoseconds of the device clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    pub start: u64,
    pub end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitResult {
    Completed,
    TimedOut,
    /// The event was destroyed and no work in flight signals it, or the devices of this process are lost: the value
    /// will never complete.
    Abandoned,
}

/// A flag or a counter.
pub(crate) struct Signal {
    kind: Kind,
    state: SignalState,
    /// The words of a counter in memory of the application. They count until a list signals, or always if signals add
    /// to them.
    words: Option<Box<Words>>,
}

enum SignalState {
    Local(Local),
    Shared(Shared),
}

/// Evaluates an expression on the state, whichever it is.
macro_rules! with_state {
    ($signal:ident, $state:ident => $value:expr) => {
        match &$signal.state {
            SignalState::Local($state) => $value,
            SignalState::Shared($state) => $value,
        }
    };
}

impl Signal {
    /// A flag that is not signalled, or a new counter.
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, state: SignalState::Local(Local::new(kind)), words: None }
    }

    /// The flag or counter with this index on a shared event page, in its current state.
    pub(crate) fn shared(kind: Kind, page: Arc<EventPage>, index: u32) -> Self {
        Self { kind, state: SignalState::Shared(Shared::new(page, index)), words: None }
    }

    /// A counter whose state is in memory of the application.
    pub(crate) fn external(words: Words) -> Self {
        Self { words: Some(Box::new(words)), ..Self::new(Kind::Counter) }
    }

    pub(crate) fn is_counter(&self) -> bool {
        self.kind == Kind::Counter
    }

    pub(crate) fn is_in_memory_of_the_application(&self) -> bool {
        self.words.is_some()
    }

    /// Submits a signal, and returns the value to [`complete`](Self::complete). Waits on a counter that start from now
    /// on wait for this value.
    pub(crate) fn submit(&self) -> u64 {
        match &self.state {
            SignalState::Local(state) => state.submit(),
            SignalState::Shared(state) => state.submit(self.kind),
        }
    }

    /// The value that a wait which starts now waits for.
    pub(crate) fn wait_value(&self) -> u64 {
        match self.kind {
            Kind::Flag => 1,
            Kind::Counter if self.increment().is_some() => 0,
            Kind::Counter => with_state!(self, state => state.submitted()),
        }
    }

    /// Submits the reset of a flag to a stream. What is submitted to any stream from now on waits for the next signal
    /// after it.
    pub(crate) fn submit_reset(&self) {
        if let SignalState::Local(state) = &self.state {
            state.submit_reset();
        }
    }

    pub(crate) fn perform_reset(&self) {
        match &self.state {
            SignalState::Local(state) => state.perform_reset(),
            SignalState::Shared(_) => self.reset(),
        }
    }

    /// What a command waits for that is submitted to a stream now, for [`wait_in_order`](Self::wait_in_order).
    pub(crate) fn submit_wait(&self) -> u64 {
        match (&self.state, self.kind) {
            (SignalState::Local(state), Kind::Flag) => state.resets(),
            _ => self.wait_value(),
        }
    }

    /// Waits in a stream for what [`submit_wait`](Self::submit_wait) has returned, until the deadline.
    pub(crate) fn wait_in_order(&self, value: u64, deadline: Deadline) -> WaitResult {
        match (&self.state, self.kind, self.words_of(value)) {
            (SignalState::Local(state), Kind::Flag, _) => state.wait_after_resets(value, deadline),
            (_, _, Some(words)) => words.watch(&words.device, deadline),
            _ => self.wait(value, deadline),
        }
    }

    /// Completes `value`: the work that submitted it has ended.
    pub(crate) fn complete(&self, value: u64, timestamps: Timestamps) {
        // Whoever sees the word may ask for the timestamps.
        with_state!(self, state => state.complete(value, timestamps));
        if let Some((words, increment)) = self.increment() {
            words.device.add(increment);
        }
    }

    /// Resets a flag. Does nothing for a counter.
    pub(crate) fn reset(&self) {
        match (&self.state, self.kind) {
            (SignalState::Local(state), Kind::Flag) => state.reset(),
            (SignalState::Shared(state), Kind::Flag) => state.reset(),
            (_, Kind::Counter) => {}
        }
    }

    /// Records that the event was destroyed. Waits end once no work in flight signals it, because nothing else can. A
    /// wait on a shared counter goes on, because another process may have submitted the value.
    pub(crate) fn abandon(&self) {
        match (&self.state, self.kind) {
            (SignalState::Local(state), _) => state.abandon(),
            (SignalState::Shared(state), Kind::Flag) => state.abandon(),
            (SignalState::Shared(_), Kind::Counter) => {}
        }
    }

    /// Wakes waits, so that they check whether the devices of this process are lost.
    pub(crate) fn wake(&self) {
        with_state!(self, state => state.wake());
    }

    /// Whether a wait that starts now would end at once.
    pub(crate) fn is_signalled(&self) -> bool {
        let expected = self.wait_value();
        match self.words_of(expected) {
            Some(words) => words.is_reached(words.host_word()),
            None => with_state!(self, state => state.is_complete(expected)),
        }
    }

    /// Whether something has waited for it in vain, or asked for its state, since it was last signalled.
    pub(crate) fn is_awaited(&self) -> bool {
        with_state!(self, state => state.is_awaited())
    }

    /// Start and end of the last work that signalled it. `None` unless it is signalled.
    pub(crate) fn timestamps(&self) -> Option<Timestamps> {
        if self.is_signalled() { with_state!(self, state => state.timestamps()) } else { None }
    }

    /// Waits until `value` completes, the deadline passes, or the event is destroyed.
    pub(crate) fn wait(&self, value: u64, deadline: Deadline) -> WaitResult {
        match self.words_of(value) {
            Some(words) => words.watch(words.host_word(), deadline),
            None => with_state!(self, state => state.wait(value, deadline)),
        }
    }

    /// Signals from the host: start and end are the current time.
    pub(crate) fn signal_now(&self) {
        let now = clock::now();
        self.complete(self.submit(), Timestamps { start: now, end: now });
    }

    /// Waits on the host for `timeout` nanoseconds: `NOT_READY` when it expires. A destroyed event counts as signalled.
    pub(crate) fn synchronize(&self, timeout: u64) -> Outcome {
        match self.wait(self.wait_value(), Deadline::after(timeout)) {
            WaitResult::Completed | WaitResult::Abandoned => Ok(()),
            WaitResult::TimedOut => Err(ZeResult::NOT_READY),
        }
    }

    /// For a counter in shared memory or in memory of the application: the value to wait for, and the
    /// address of a 64-bit word that reaches this value when it completes.
    pub(crate) fn counter_address(&self) -> Option<(u64, usize)> {
        match (&self.state, self.words_of(self.wait_value())) {
            (_, Some(words)) => Some((words.completion, words.device.address())),
            (SignalState::Shared(state), None) if self.is_counter() => Some(state.counter_address()),
            _ => None,
        }
    }

    /// The words in memory of the application, if this value stands for them.
    fn words_of(&self, value: u64) -> Option<&Words> {
        self.words.as_deref().filter(|_| value == 0)
    }

    /// What a signal adds to a word in memory of the application, if it does.
    fn increment(&self) -> Option<(&Words, u64)> {
        self.words.as_deref().and_then(|words| Some((words, words.increment?)))
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
    fn a_counter_waits_for_the_latest_value_and_needs_no_reset() {
        let counter = Signal::new(Kind::Counter);
        assert!(counter.is_signalled());
        let first = counter.submit();
        assert!(!counter.is_signalled());
        let second = counter.submit();
        counter.complete(first, TIMESTAMPS);
        assert!(!counter.is_signalled() && counter.timestamps().is_none());
        assert_eq!(counter.wait(first, Deadline::NEVER), WaitResult::Completed);
        counter.complete(second, TIMESTAMPS);
        assert!(counter.is_signalled() && counter.timestamps().is_some());
    }

    #[test]
    fn a_value_that_is_overtaken_is_still_waited_for() {
        let header = Header { count: 1, flags: 0, counters: true };
        let page = EventPage::new(Purpose::Event, header).unwrap();
        for counter in [Signal::new(Kind::Counter), Signal::shared(Kind::Counter, page, 0)] {
            let first = counter.submit();
            let second = counter.submit();
            counter.complete(second, TIMESTAMPS);
            assert!(counter.is_signalled());
            assert_eq!(counter.wait(first, Deadline::now()), WaitResult::TimedOut);
            counter.complete(first, TIMESTAMPS);
            assert_eq!(counter.wait(first, Deadline::NEVER), WaitResult::Completed);
        }
    }

    #[test]
    fn a_wait_ends_when_the_event_is_abandoned() {
        let flag = Signal::new(Kind::Flag);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| flag.wait(1, Deadline::NEVER));
            flag.abandon();
            assert_eq!(waiter.join().unwrap(), WaitResult::Abandoned);
        });
    }

    #[test]
    fn a_destroyed_event_is_still_waited_for_while_work_in_flight_signals_it() {
        let flag = Signal::new(Kind::Flag);
        let value = flag.submit();
        flag.abandon();
        assert_eq!(flag.wait(value, Deadline::now()), WaitResult::TimedOut);
        flag.complete(value, TIMESTAMPS);
        assert_eq!(flag.wait(value, Deadline::NEVER), WaitResult::Completed);
    }

    #[test]
    fn a_deadline_in_the_past_only_checks() {
        let flag = Signal::new(Kind::Flag);
        assert_eq!(flag.wait(1, Deadline::now()), WaitResult::TimedOut);
        flag.complete(1, TIMESTAMPS);
        assert_eq!(flag.wait(1, Deadline::now()), WaitResult::Completed);
    }
}
