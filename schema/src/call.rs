//! One call: the record of its enter and the record of its exit, with typed values.

use crate::api::{Function, UrResult, demand::Nulls};
use crate::operation::{Answer, Begun, Operation, Returned};
pub use crate::values::{Fields, Shape, Values};

/// A moment, in nanoseconds of the host's `CLOCK_MONOTONIC`: comparable between all processes of one boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nanos(pub u64);

/// A call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enter {
    /// The function that is called.
    pub function: Function,
    /// The number of the call in its process, from 1 on. The exit has the same number.
    pub call: u64,
    /// The kernel's number of the calling thread.
    pub tid: u32,
    /// When the call began or returned.
    pub time: Nanos,
    /// The arguments.
    pub values: Values,
}

impl Enter {
    /// The arguments that are missing, as far as the record shows.
    pub fn nulls(&self) -> Nulls {
        self.function.nulls(&self.values)
    }

    /// The call, decoded.
    pub fn begun(&self, nulls: &Nulls) -> Begun {
        let Self { function, call, tid, time, ref values } = *self;
        let (operation, fault) = (Operation::of(function, values), nulls.fault(function, values));
        Begun { function, call, tid, time, stack: values.stack, operation, fault }
    }

    /// Whether the call shares something between processes. The verdict is about these.
    pub fn is_ipc(&self) -> bool {
        self.function.is_ipc() || self.function.imports(&self.values)
    }
}

/// A call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The function that was called.
    pub function: Function,
    /// The number of the call in its process.
    pub call: u64,
    /// The kernel's number of the calling thread.
    pub tid: u32,
    /// When the call began or returned.
    pub time: Nanos,
    /// The result.
    pub result: UrResult,
    /// The answers in the caller's memory; empty unless the call succeeded.
    pub values: Values,
}

impl Exit {
    /// The call, decoded.
    pub fn returned(&self) -> Returned {
        let Self { function, call, tid, time, result, ref values } = *self;
        Returned { function, call, tid, time, result, answer: Answer::of(function, values) }
    }
}
