//! Which calls are wanted: one search for lists of calls and for the page's table.

use urscope_schema::api::{Function, Interface, ResultCode};
use urscope_schema::{call::Shape, handle::Kind, host::ranks::Ranks};

use crate::lifetimes::FinishedCall;

/// Which calls are wanted. The default wants all.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Only those that share something.
    pub ipc: bool,
    /// Of these processes; of all if there is none.
    pub pids: Vec<u32>,
    /// Of these ranks; of all processes if there is none.
    pub ranks: Option<Ranks>,
    /// Of the process with this number in the run.
    pub process: Option<u64>,
    /// Of the function with this name.
    pub function: Option<String>,
    /// About objects of these kinds, or handle data of them; about all if there is none.
    pub kinds: Vec<Kind>,
    /// With this address or fingerprint among their arguments and answers.
    pub handle: Option<u64>,
    /// With this fingerprint.
    pub fingerprint: Option<u64>,
    /// Of this API.
    pub level: Option<&'static Interface>,
    /// Only those that are not inside of another one.
    pub outer: bool,
    /// Only those that failed or never returned.
    pub errors: bool,
    /// Only those that were running at this time or later, in nanoseconds since the run began.
    pub from_ns: Option<u64>,
    /// Only those that had begun by this time.
    pub to_ns: Option<u64>,
}

/// A call that can be searched.
pub trait Searched {
    /// The number of its process in the run.
    fn process(&self) -> u32;
    /// The function.
    fn function(&self) -> Function;
    /// When it began and when it returned, in nanoseconds since the run began; `None` if it never returned.
    fn span(&self) -> (u64, Option<u64>);
    /// The result; `None` if it never returned.
    fn result(&self) -> Option<ResultCode>;
    /// Whether it shares something.
    fn shares(&self) -> bool;
    /// Whether one of its values is that address or fingerprint. Numbers and sizes are not meant.
    fn names(&self, handle: u64) -> bool;
    /// The fingerprint of its handle data.
    fn fingerprint(&self) -> Option<u64>;
}

impl Searched for FinishedCall<'_> {
    fn process(&self) -> u32 {
        self.process
    }

    fn function(&self) -> Function {
        self.function
    }

    fn span(&self) -> (u64, Option<u64>) {
        (self.from, self.to)
    }

    fn result(&self) -> Option<ResultCode> {
        self.result
    }

    fn shares(&self) -> bool {
        self.function.is_ipc() || self.function.imports(self.asked)
    }

    fn names(&self, handle: u64) -> bool {
        let mut found = self.fingerprint == Some(handle);
        let mut look = |_, shape, value| found |= shape == Shape::Hex && value == handle;
        self.asked.for_each(&mut look);
        self.answered.for_each(&mut look);
        found
    }

    fn fingerprint(&self) -> Option<u64> {
        self.fingerprint
    }
}

impl CallFilter {
    pub(super) fn wants_process(&self, pid: u32, rank: Option<u32>) -> bool {
        let of_ranks = |ranks: &Ranks| rank.is_some() && ranks.has(rank);
        (self.pids.is_empty() || self.pids.contains(&pid)) && self.ranks.as_ref().is_none_or(of_ranks)
    }

    /// Whether a call is wanted, of a process that is.
    pub fn wants(&self, call: &impl Searched) -> bool {
        let function = call.function();
        let (from, to) = call.span();
        (!self.ipc || call.shares())
            && self.process.is_none_or(|process| u64::from(call.process()) == process)
            && self.function.as_ref().is_none_or(|name| function.name() == name.as_str())
            && self.level.is_none_or(|level| level == function.interface())
            && (self.kinds.is_empty() || self.kinds.contains(&function.effect().kind()))
            && self.to_ns.is_none_or(|last| from <= last)
            && self.from_ns.is_none_or(|first| to.is_none_or(|to| to >= first))
            && (!self.errors || call.result().is_none_or(|result| !result.is_success()))
            && self.fingerprint.is_none_or(|fingerprint| call.fingerprint() == Some(fingerprint))
            && self.handle.is_none_or(|handle| call.names(handle))
    }
}
