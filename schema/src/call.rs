//! One call: the record of its enter and the record of its exit, with typed values.

use crate::api::{Function, UrResult, demand::Fault};
use crate::handle::Kind;
use crate::operation::{Begun, Returned};
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
    /// The kind of the handle data that the call opens; `None` if it opens none. An allocation of Level Zero opens
    /// handle data of memory if it imports a descriptor.
    pub fn opens(&self) -> Option<Kind> {
        if self.imports() { Some(Kind::MemHandle) } else { self.function.opens() }
    }

    /// What the header specifies an error for in the arguments that the record shows.
    pub fn fault(&self) -> Option<Fault> {
        self.function.nulls(&self.values).fault(self.function, &self.values)
    }

    /// The call, decoded. `fault` is what is wrong with its arguments.
    pub fn begun(&self, fault: Option<Fault>) -> Begun {
        Begun::of(self.function, self.call, self.tid, self.time, &self.values, fault)
    }

    /// Whether the call imports an exported descriptor.
    pub fn imports(&self) -> bool {
        self.function.imports(&self.values)
    }

    /// Whether the call shares something between processes. The verdict is about these.
    pub fn is_ipc(&self) -> bool {
        self.function.is_ipc() || self.imports()
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
        Returned::of(self.function, self.call, self.tid, self.time, self.result, &self.values)
    }
}
