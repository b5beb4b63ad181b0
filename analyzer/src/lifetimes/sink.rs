//! Event sinks: the interface through which lifetimes are passed on, and its data types.

use urscope_schema::api::{Effect, Function, ResultCode};
use urscope_schema::call::{Executed, Values};
use urscope_schema::{handle::Kind, trace::records::Header};

use super::Counts;
use crate::analysis::{Ended, Stacks};

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident($($argument:ident: $type:ty),*);)*) => {
        /// Receives the processes, calls and lifetimes of a run.
        ///
        /// Times are nanoseconds since the first process of the run began. Processes are numbered in the order in which
        /// they begin, as in [`crate::Judgement::processes`] of the same traces. Events arrive in the order in which
        /// they become known. A call arrives when it returns, after the deaths and before the births that it causes, so
        /// the times of calls and deaths can be earlier than those of previous events. The times of births, counts,
        /// descriptors, and begins and ends of processes never decrease.
        pub trait EventSink {
            $($(#[$doc])*
            fn $event(&mut self, $($argument: $type),*) {
                let _ = ($($argument,)*);
            })*
        }

        /// Two sinks of one tracker.
        impl<A: EventSink, B: EventSink> EventSink for (A, B) {
            $(fn $event(&mut self, $($argument: $type),*) {
                self.0.$event($($argument),*);
                self.1.$event($($argument),*);
            })*
        }
    };
}

events! {
    /// A process begins.
    process(began: &ProcessStart<'_>);
    /// The call stacks of a process that has begun. They can be looked up as soon as a call refers to them.
    stacks(process: u32, stacks: &Stacks);
    /// A thread of a process has a name.
    thread(process: u32, tid: u32, name: &str);
    /// A call has returned, or its process ended in the middle of it.
    call(call: &FinishedCall<'_>);
    /// A call inside of the one with its number has returned, before that one: one of Level Zero that the runtime has
    /// made. It has no stack, and neither begins nor ends lifetimes.
    inner(call: &FinishedCall<'_>);
    /// A lifetime begins.
    birth(life: &Lifetime);
    /// A lifetime ends at `at`. What is alive when the trace of a running process ends has no death.
    death(life: &Lifetime, at: u64, how: EndReason);
    /// Memory was freed of which handle data was got: the allocation of that number ([`Allocated::memory`]) ended at
    /// `at`.
    freed(process: u32, memory: u64, at: u64);
    /// The live counts of a process have changed.
    counts(process: u32, at: u64, counts: &Counts);
    /// The device has executed a command, which ended at `at`: an access to shared memory.
    executed(process: u32, at: u64, executed: &Executed);
    /// A sample of the number of open descriptors of a process.
    descriptors(process: u32, at: u64, open: u64);
    /// A process ends, or the trace of a running process does.
    end(process: u32, at: u64, ended: Ended);
}

/// A sink that ignores all events.
impl EventSink for () {}

/// A process that begins.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStart<'a> {
    /// Its number.
    pub process: u32,
    /// The time, in nanoseconds since the run began.
    pub at: u64,
    /// The number of its host, counted from 0. Pids and handles are unique within a host.
    pub host: u64,
    /// The header of its trace: its pid, its host's name, executable, command line, rank.
    pub header: &'a Header,
}

/// A call that has returned, or whose process has ended.
#[derive(Clone, Copy, Debug)]
pub struct FinishedCall<'a> {
    /// The number of its process.
    pub process: u32,
    /// The thread id.
    pub tid: u32,
    /// Its number in its process, counted from 1; of an inner call ([`EventSink::inner`]), that of the call that it is
    /// inside of.
    pub number: u64,
    /// The called function.
    pub function: Function,
    /// When it began, in nanoseconds since the run began.
    pub from: u64,
    /// When it returned, in nanoseconds since the run began; `None` if it never returned.
    pub to: Option<u64>,
    /// Its result; `None` if it never returned.
    pub result: Option<ResultCode>,
    /// The recorded input arguments.
    pub asked: &'a Values,
    /// The recorded output arguments.
    pub answered: &'a Values,
    /// The number of the lifetime that it began: of handle data that was got, or of an opening.
    pub made: Option<u64>,
    /// The number of the lifetime of the handle data that it opened: the latest with these bytes that was got before
    /// the call.
    pub of: Option<u64>,
    /// The numbers of the lifetimes that it ended. Where nothing need be put, a free ends those of all handle data of
    /// its memory.
    pub ended: &'a [u64],
    /// The fingerprint of the handle data that it got, opened, put, closed or freed the memory of.
    pub fingerprint: Option<u64>,
}

/// An end of an arrow at a call or at a birth. Arrows are numbered by lifetimes: one goes from the get of handle data
/// to every open of it, one from the birth of an opening to the call that closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// It begins here.
    From(u64),
    /// It ends here.
    To(u64),
}

impl FinishedCall<'_> {
    /// The arrow that begins or ends at the call.
    pub fn arrow(&self) -> Option<Arrow> {
        match self.function.effect() {
            Effect::Exports(_) | Effect::MayExport(_) => self.made.map(Arrow::From),
            Effect::Opens(_) | Effect::Allocates(_) | Effect::Creates(_) => {
                self.of.filter(|_| self.to.is_some()).map(Arrow::To)
            }
            Effect::Closes(_) | Effect::Releases(_) | Effect::Destroys(_) | Effect::Resets(_) => {
                self.ended.first().copied().map(Arrow::To)
            }
            _ => None,
        }
    }
}

/// What has a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LifetimeKind {
    /// Handle data in its producer, from get to put.
    Handle,
    /// Something opened in a consumer, from open to close.
    Opening,
}

impl LifetimeKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handle => "handle",
            Self::Opening => "opening",
        }
    }
}

/// A lifetime of handle data or of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its number, which is unique in a run.
    pub id: u64,
    /// The number of its process.
    pub process: u32,
    /// The id of the thread that began it.
    pub tid: u32,
    /// Handle data, or an opening.
    pub lane: LifetimeKind,
    /// The kind of the object: handle data of one of three kinds, or a mapping, physical memory, an event.
    pub kind: Kind,
    /// Its address or handle in its process.
    pub address: u64,
    /// The number of bytes that are accessible through it, if known; an event has none.
    pub bytes: Option<u64>,
    /// The fingerprint of its handle data, if the tracker knows it.
    pub fingerprint: Option<u64>,
    /// The number of its export: equal for all handle data with equal bytes that is got from one pointer of one
    /// allocation (or from one object), and for all openings of it.
    pub export: Option<u64>,
    /// The number of the process that first got the handle data.
    pub producer: Option<u32>,
    /// For an opening: the number of the lifetime of the handle data that was opened.
    pub of: Option<u64>,
    /// For an opening: whether this is the first time that this process opened this export.
    pub first: bool,
    /// When it began, in nanoseconds since the run began.
    pub at: u64,
    /// The number of the call that began it.
    pub call: u64,
    /// The number of the call stack of that call in its process.
    pub stack: Option<u64>,
    /// For handle data of memory: the allocation, if it was recorded.
    pub allocated: Option<Allocated>,
}

/// The allocation of memory that handle data was got of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The number of the allocation, which is unique in a run.
    pub memory: u64,
    /// When the call began that allocated it, in nanoseconds since the run began.
    pub at: u64,
}

impl Lifetime {
    /// The arrow that begins at its birth.
    pub fn arrow(&self) -> Option<Arrow> {
        (self.lane == LifetimeKind::Opening).then_some(Arrow::From(self.id))
    }
}

/// How a lifetime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// By a call of its process.
    By(Function, u64),
    /// Its address was reused, and the call that ended it was not recorded.
    Replaced,
    /// Its process ended.
    With(Ended),
}

impl EndReason {
    /// A word for the reason, or the function's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::By(function, _) => function.name(),
            Self::Replaced => "replaced",
            Self::With(Ended::Exited) => "exit",
            Self::With(Ended::Killed) => "kill",
            Self::With(Ended::Running) => "still running",
            Self::With(Ended::Exec) => "exec",
            Self::With(Ended::Incomplete) => "end of trace",
        }
    }
}
