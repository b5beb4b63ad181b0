//! Who listens to a hearing besides the law: statistics, tables, timelines.

use urscope_rules::{ProcessId, Tracker, tracker::fact::Fact};
use urscope_schema::{
    call::{Enter, Exit},
    trace::records::Header,
};

use super::Ended;

/// Hears what the law hears, record by record, in the order of time.
///
/// `at` is when something happens, in nanoseconds since the first process of the run began; the clocks of hosts are related by
/// their real time. Processes are numbered in the order in which they begin, as in [`super::Judgement::processes`].
pub trait Observer {
    /// Something is about to happen: the tracker is as it has been until then.
    fn until(&mut self, tracker: &Tracker, at: u64) {
        let _ = (tracker, at);
    }

    /// A process begins.
    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        let _ = (tracker, who, at, header);
    }

    /// A thread of a process has a name.
    fn thread(&mut self, tracker: &Tracker, who: ProcessId, tid: u32, name: &str) {
        let _ = (tracker, who, tid, name);
    }

    /// A call begins, and has not moved the tracker yet: what it will end is still there.
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        let _ = (tracker, who, at, enter);
    }

    /// A call has returned and moved the tracker: what it made is there.
    fn exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        let _ = (tracker, who, at, exit);
    }

    /// The tracker has emitted a fact. Those of a call come between [`Self::enter`] and [`Self::exit`], those of the end of a
    /// process behind [`Self::end`].
    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        let _ = (at, fact);
    }

    /// So many descriptors are open in a process.
    fn descriptors(&mut self, tracker: &Tracker, who: ProcessId, at: u64, open: u64) {
        let _ = (tracker, who, at, open);
    }

    /// A process ends: what it held is still there.
    fn end(&mut self, tracker: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        let _ = (tracker, who, at, ended);
    }
}

/// Nobody.
impl Observer for () {}

macro_rules! each {
    ($self:ident.$method:ident$arguments:tt) => {{
        $self.0.$method$arguments;
        $self.1.$method$arguments;
    }};
}

/// Two who listen to one analysis.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn until(&mut self, tracker: &Tracker, at: u64) {
        each!(self.until(tracker, at));
    }

    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        each!(self.begin(tracker, who, at, header));
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

    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        each!(self.fact(at, fact));
    }

    fn descriptors(&mut self, tracker: &Tracker, who: ProcessId, at: u64, open: u64) {
        each!(self.descriptors(tracker, who, at, open));
    }

    fn end(&mut self, tracker: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        each!(self.end(tracker, who, at, ended));
    }
}
