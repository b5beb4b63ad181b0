//! Where something happened: a process, and a call in it.

use std::num::NonZeroU64;

use urscope_schema::api::interface::Words;
use urscope_schema::api::{Effect, Function, Promise, ResultCode, UNIFIED_RUNTIME};
use urscope_schema::{call::Nanos, handle::Kind, operation::Begun};

/// A process, numbered by the tracker in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// A process that is not in this tracker: the parent of a child whose parent was not traced, or the
    /// former program of a process that was not traced then.
    pub const UNKNOWN: Self = Self(u32::MAX);
}

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// In which process.
    pub process: ProcessId,
    /// On which thread; 0 for none.
    pub tid: u32,
    /// When.
    pub time: Nanos,
    /// In which call of the process.
    pub call: Option<NonZeroU64>,
    /// In which function.
    pub function: Option<Function>,
    /// The number of its call stack in the process's trace.
    pub stack: Option<NonZeroU64>,
}

impl Place {
    /// The begin of a call.
    pub fn from_begun(process: ProcessId, begun: &Begun) -> Self {
        let Begun { function, call, tid, time, stack, .. } = *begun;
        let call = NonZeroU64::new(call);
        let stack = stack.and_then(NonZeroU64::new);
        Self { process, tid, time, call, function: Some(function), stack }
    }

    /// What the call does to its object.
    pub fn effect(&self) -> Option<Effect> {
        self.function.map(Function::effect)
    }

    /// Whether the call ends a context, or a reference to one.
    pub fn ends_context(&self) -> bool {
        matches!(self.effect(), Some(Effect::Releases(Kind::Context) | Effect::Resets(Kind::Context)))
    }

    /// How findings name what belongs to the interface of the call.
    pub fn words(&self) -> Words {
        self.function.map_or(UNIFIED_RUNTIME.words, |function| function.interface().words)
    }

    /// Whether the interface of the call promises something.
    pub fn promises(&self, promise: Promise) -> bool {
        self.function.is_some_and(|function| function.interface().promises(promise))
    }

    /// The code of Unified Runtime with the meaning of a result of this call.
    pub fn meaning(&self, result: ResultCode) -> ResultCode {
        self.function.map_or(result, |function| result.meaning_of(function))
    }

    /// A time in a process, outside all calls.
    pub const fn outside_calls(process: ProcessId, time: Nanos) -> Self {
        Self { process, tid: 0, time, call: None, function: None, stack: None }
    }
}
