//! Observers: receivers of an analysis besides the rules, such as statistics, tables and timelines.

use urscope_rules::{ProcessId, Tracker, tracker::fact::Fact};
use urscope_schema::{
    call::{Enter, Exit},
    trace::records::Header,
};

use super::{Ended, Stacks};

/// Receives the same events as the rules, one by one, in the order of time.
///
/// `at` is the time of an event, in nanoseconds since the first process of the run began; hosts are aligned by their real time.
/// Processes are numbered in the order in which they begin, as in [`super::Judgement::processes`].
pub trait Observer {
    /// An event is about to be fed. The tracker shows the state before it.
    fn until(&mut self, tracker: &Tracker, at: u64) {
        let _ = (tracker, at);
    }

    /// A process begins.
    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        let _ = (tracker, who, at, header);
    }

    /// The call stacks of a process that has begun. They can be looked up as soon as a call refers to them.
    fn stacks(&mut self, who: ProcessId, stacks: &Stacks) {
        let _ = (who, stacks);
    }

    /// A thread of a process has a name.
    fn thread(&mut self, tracker: &Tracker, who: ProcessId, tid: u32, name: &str) {
        let _ = (tracker, who, tid, name);
    }

    /// A call begins. The tracker does not know the call yet: objects that the call will end still exist.
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        let _ = (tracker, who, at, enter);
    }

    /// A call has returned. The tracker has processed it: objects that the call created exist.
    fn exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let _ = (tracker, who, at, exit);
    }

    /// A call begins inside of the one with its number: one of Level Zero that the runtime makes. The tracker does not know of it.
    fn inner_enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        let _ = (tracker, who, at, enter);
    }

    /// Such a call has returned: the latest one that has begun on this thread.
    fn inner_exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let _ = (tracker, who, at, exit);
    }

    /// The tracker has emitted a fact. Facts of a call come between [`Self::enter`] and [`Self::exit`]. Facts of the end of a
    /// process come after [`Self::end`].
    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        let _ = (at, fact);
    }

    /// Whether [`Self::fact`] takes any.
    fn takes_facts(&self) -> bool {
        true
    }

    /// A process has `open` open descriptors.
    fn descriptors(&mut self, tracker: &Tracker, who: ProcessId, at: u64, open: u64) {
        let _ = (tracker, who, at, open);
    }

    /// A process ends. What it holds still exists in the tracker.
    fn end(&mut self, tracker: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        let _ = (tracker, who, at, ended);
    }
}

/// An observer that ignores all events.
impl Observer for () {
    fn takes_facts(&self) -> bool {
        false
    }
}

macro_rules! each {
    ($self:ident.$method:ident$arguments:tt) => {{
        $self.0.$method$arguments;
        $self.1.$method$arguments;
    }};
}

/// Two observers of one analysis.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn until(&mut self, tracker: &Tracker, at: u64) {
        each!(self.until(tracker, at));
    }

    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        each!(self.begin(tracker, who, at, header));
    }

    fn stacks(&mut self, who: ProcessId, stacks: &Stacks) {
        each!(self.stacks(who, stacks));
    }

    fn thread(&mut self, tracker: &Tracker, who: ProcessId, tid: u32, name: &str) {
        each!(self.thread(tracker, who, tid, name));
    }

    fn enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        each!(self.enter(tracker, who, at, enter));
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        each!(self.exit(tracker, who, at, exit));
    }

    fn inner_enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        each!(self.inner_enter(tracker, who, at, enter));
    }

    fn inner_exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        each!(self.inner_exit(tracker, who, at, exit));
    }

    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        each!(self.fact(at, fact));
    }

    fn takes_facts(&self) -> bool {
        self.0.takes_facts() || self.1.takes_facts()
    }

    fn descriptors(&mut self, tracker: &Tracker, who: ProcessId, at: u64, open: u64) {
        each!(self.descriptors(tracker, who, at, open));
    }

    fn end(&mut self, tracker: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        each!(self.end(tracker, who, at, ended));
    }
}
