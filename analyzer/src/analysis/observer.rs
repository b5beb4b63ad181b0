//! Observers: receivers of an analysis besides the rules, such as statistics, tables and timelines.

use urscope_rules::{ProcessId, Tracker, tracker::fact::Fact};
use urscope_schema::call::{Enter, Exit};
use urscope_schema::trace::records::Header;

use super::{Ended, Stacks};

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident($($argument:ident: $type:ty),*);)*) => {
        /// Receives the same events as the rules, one by one, in the order of time.
        ///
        /// `at` is the time of an event, in nanoseconds since the first process of the run began; hosts are aligned by
        /// their real time. Processes are numbered in the order in which they begin, as in
        /// [`super::Judgement::processes`].
        pub trait Observer {
            $($(#[$doc])*
            fn $event(&mut self, $($argument: $type),*) {
                if let Some(next) = self.next() {
                    next.$event($($argument),*);
                }
            })*

            /// The observer that gets the events which this one does not take.
            fn next(&mut self) -> Option<&mut dyn Observer> {
                None
            }

            /// Whether any event has an effect. It gets calls and facts only then.
            fn observes(&self) -> bool {
                true
            }
        }

        /// Two observers of one analysis.
        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(fn $event(&mut self, $($argument: $type),*) {
                self.0.$event($($argument),*);
                self.1.$event($($argument),*);
            })*

            fn observes(&self) -> bool {
                self.0.observes() || self.1.observes()
            }
        }
    };
}

events! {
    /// An event is about to be fed. The tracker shows the state before it.
    until(tracker: &Tracker, at: u64);
    /// A process begins.
    begin(tracker: &Tracker, who: ProcessId, at: u64, header: &Header);
    /// The call stacks of a process that has begun. They can be looked up as soon as a call refers to them.
    stacks(who: ProcessId, stacks: &Stacks);
    /// A thread of a process has a name.
    thread(tracker: &Tracker, who: ProcessId, tid: u32, name: &str);
    /// A call begins. The tracker does not know the call yet: objects that the call will end still exist.
    enter(tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter);
    /// A call has returned. The tracker has processed it: objects that the call created exist.
    exit(tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit);
    /// A call begins inside of the one with its number: one of Level Zero that the runtime makes. The tracker does not
    /// know of it.
    inner_enter(tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter);
    /// Such a call has returned: the latest one that has begun on this thread.
    inner_exit(tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit);
    /// The tracker has emitted a fact. Facts of a call come between [`Self::enter`] and [`Self::exit`]. Facts of the
    /// end of a process come after [`Self::end`].
    fact(at: u64, fact: &Fact<'_>);
    /// A process has `open` open descriptors.
    descriptors(tracker: &Tracker, who: ProcessId, at: u64, open: u64);
    /// A process ends. What it holds still exists in the tracker.
    end(tracker: &Tracker, who: ProcessId, at: u64, ended: Ended);
}

/// An observer that ignores all events.
impl Observer for () {
    fn observes(&self) -> bool {
        false
    }
}
