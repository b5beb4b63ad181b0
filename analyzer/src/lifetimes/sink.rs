//! What a run is told as, to whoever writes it down.

use urscope_schema::{
    api::{Effect, Function, UrResult},
    call::Values,
    handle::Kind,
    trace::records::Header,
};

use super::Counts;
use crate::analysis::Ended;

/// Writes down what happens in a run.
///
/// Times are nanoseconds since the first process of the run began. Processes are numbered in the order in which they begin, as in
/// [`crate::Judgement::processes`] of the same traces. What is told comes in the order in which it became known: a call is
/// told when it returns, behind the deaths that it brought and before the births, so times of calls and deaths may lie
/// before what was told already. Those of births, counts, descriptors, and of what processes do, never go back.
pub trait EventSink {
    /// A process begins.
    fn process(&mut self, began: &ProcessStart<'_>) {
        let _ = began;
    }

    /// A thread of a process has a name.
    fn thread(&mut self, process: u32, tid: u32, name: &str) {
        let _ = (process, tid, name);
    }

    /// A call has returned, or its process ended in the middle of it.
    fn call(&mut self, call: &FinishedCall<'_>) {
        let _ = call;
    }

    /// Something begins to live.
    fn birth(&mut self, life: &Lifetime) {
        let _ = life;
    }

    /// It does not any longer. What lives when the trace of a running process ends has no death.
    fn death(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        let _ = (life, at, how);
    }

    /// How much lives in a process, each time that it changes; `at` never goes back.
    fn counts(&mut self, process: u32, at: u64, counts: &Counts) {
        let _ = (process, at, counts);
    }

    /// How many descriptors a process has open, now and then.
    fn descriptors(&mut self, process: u32, at: u64, open: u64) {
        let _ = (process, at, open);
    }

    /// A process ends; where it still runs, its trace does.
    fn end(&mut self, process: u32, at: u64, ended: Ended) {
        let _ = (process, at, ended);
    }
}

/// Nobody.
impl EventSink for () {}

macro_rules! each {
    ($self:ident.$method:ident$arguments:tt) => {{
        $self.0.$method$arguments;
        $self.1.$method$arguments;
    }};
}

/// Two who write down one tracker.
impl<A: EventSink, B: EventSink> EventSink for (A, B) {
    fn process(&mut self, began: &ProcessStart<'_>) {
        each!(self.process(began));
    }

    fn thread(&mut self, process: u32, tid: u32, name: &str) {
        each!(self.thread(process, tid, name));
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        each!(self.call(call));
    }

    fn birth(&mut self, life: &Lifetime) {
        each!(self.birth(life));
    }

    fn death(&mut self, life: &Lifetime, at: u64, how: EndReason) {
        each!(self.death(life, at, how));
    }

    fn counts(&mut self, process: u32, at: u64, counts: &Counts) {
        each!(self.counts(process, at, counts));
    }

    fn descriptors(&mut self, process: u32, at: u64, open: u64) {
        each!(self.descriptors(process, at, open));
    }

    fn end(&mut self, process: u32, at: u64, ended: Ended) {
        each!(self.end(process, at, ended));
    }
}

/// A process that begins.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStart<'a> {
    /// Its number.
    pub process: u32,
    /// When.
    pub at: u64,
    /// The number of its host, from 0 on: within one, numbers of processes and handles mean the same.
    pub host: u64,
    /// Who it is: its pid, its host's name, executable, command line, rank.
    pub header: &'a Header,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct FinishedCall<'a> {
    /// Whose.
    pub process: u32,
    /// By which thread.
    pub tid: u32,
    /// Its number in its process, from 1 on.
    pub number: u64,
    /// Of what.
    pub function: Function,
    /// When it began.
    pub from: u64,
    /// When it returned; none if it never did.
    pub to: Option<u64>,
    /// What was answered; none if it never returned.
    pub result: Option<UrResult>,
    /// What is known of its arguments.
    pub asked: &'a Values,
    /// What is known of its answers.
    pub answered: &'a Values,
    /// The number of the life that it made: of handle data that was got, or of an opening.
    pub made: Option<u64>,
    /// The number of the life of the handle data that it opened: the latest, got before the call began, with these bytes.
    pub of: Option<u64>,
    /// The numbers of the lives that it ended. A free ends those of all handle data that is out of its memory.
    pub ended: &'a [u64],
}

/// An arrow's end at a call or at a birth. Arrows are numbered by lives: one goes from the get of handle data to every open
/// of it, one from the birth of an opening to the call that closes it.
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
            Effect::Makes(kind) if kind.shares().is_some() => self.made.map(Arrow::From),
            Effect::Makes(_) => self.of.filter(|_| self.to.is_some()).map(Arrow::To),
            Effect::Ends(Kind::Mapping | Kind::PhysicalMem | Kind::Event) | Effect::Releases(_) => {
                self.ended.first().copied().map(Arrow::To)
            }
            _ => None,
        }
    }
}

/// What the one who lives is.
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

/// A life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its number, never the same twice in a run.
    pub id: u64,
    /// In which process.
    pub process: u32,
    /// Made by which thread.
    pub tid: u32,
    /// Handle data, or an opening.
    pub lane: LifetimeKind,
    /// What lives: handle data of one of three kinds, or a mapping, physical memory, an event.
    pub kind: Kind,
    /// Its address or handle in its process.
    pub address: u64,
    /// How many bytes can be seen through it, if that is known; an event has none.
    pub bytes: Option<u64>,
    /// The fingerprint of its handle data, if the law knows it.
    pub fingerprint: Option<u64>,
    /// The number of its export: equal for all handle data that is got of one pointer of one allocation (of one object) with
    /// equal bytes, and for all openings of it.
    pub export: Option<u64>,
    /// The process that got the handle data first.
    pub producer: Option<u32>,
    /// Of an opening: the number of the life of the handle data that was opened.
    pub of: Option<u64>,
    /// Of an opening: whether this process never opened this export before.
    pub first: bool,
    /// When it began.
    pub at: u64,
    /// In which call.
    pub call: u64,
}

impl Lifetime {
    /// The arrow that begins at its birth.
    pub fn arrow(&self) -> Option<Arrow> {
        (self.lane == LifetimeKind::Opening).then_some(Arrow::From(self.id))
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// By a call of its process.
    By(Function, u64),
    /// Its address was given out anew, and how it ended was not seen.
    Replaced,
    /// Its process ended.
    With(Ended),
}

impl EndReason {
    /// How it ended, in a word or by a function's name.
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
