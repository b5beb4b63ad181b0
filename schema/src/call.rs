//! One call: the record of its enter and the record of its exit, with typed values.

use crate::api::{Function, ResultCode, demand::Nulls};
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
        let operation = Operation::from_call(function, values);
        let fault = nulls.fault(function, values);
        Begun { function, call, tid, time, stack: values.stack, operation, fault }
    }

    /// Whether the call shares something between processes. The verdict is about these.
    pub fn is_ipc(&self) -> bool {
        self.function.is_ipc() || self.function.imports(&self.values)
    }
}

/// The software device has executed a command that accessed memory which processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The number of the call that enqueued or appended the command; 0 if that was not recorded.
    pub call: u64,
    /// The kernel's number of the thread that executed it.
    pub tid: u32,
    /// When it could begin: all that it waits for had happened.
    pub begin: Nanos,
    /// When it had ended, before anything that it signals was signalled.
    pub end: Nanos,
    /// The number of the memory, equal in all processes of a host.
    pub memory: u64,
    /// Which bytes of that.
    pub rows: Rows,
    /// What it did with them.
    pub access: Access,
}

/// A call that orders commands, or shows that some have completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronization {
    /// The kernel's number of the calling thread.
    pub tid: u32,
    /// When the call had returned; of [`SyncKind::NotFollowed`], when it was made.
    pub time: Nanos,
    /// What it does.
    pub kind: SyncKind,
    /// The queue.
    pub queue: Option<u64>,
    /// The event; of [`SyncKind::Executes`], the command list.
    pub event: Option<u64>,
}

/// What a [`Synchronization`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// The host knows that the commands of the queue have completed, or those in front of the event; without either,
    /// all that the process has enqueued.
    Completed,
    /// Likewise, but the host may know it, or can find out without a further call that is hooked.
    MayBeCompleted,
    /// The queue signals the event when all that was enqueued in it before has completed; of a queue out of order, when
    /// that has which the same call has enqueued.
    Signals,
    /// What is enqueued in the queue from now on waits for all that was enqueued in it before.
    Barrier,
    /// What is enqueued in the queue from now on waits for the event.
    WaitsFor,
    /// A kernel, or something else that may wait for a flag in memory or write one, is enqueued in the queue; without a
    /// queue, perhaps in any.
    NotFollowed,
    /// The queue is new and executes its commands one after the other.
    InOrder,
    /// The queue is new and may execute its commands in any order.
    OutOfOrder,
    /// The queue is a new command list: what is added to it is enqueued each time it is executed.
    List,
    /// The queue executes the command list that is named in the place of an event.
    Executes,
    /// The process begins to share memory, and its commands are recorded. What command lists contain by then is not
    /// known.
    Shares,
    /// The event is not signalled any more, or the command list is empty.
    Resets,
    /// From now on not all commands are recorded, and no other synchronization: the trace has reached its limit.
    Limit,
}

impl SyncKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Completed,
        Self::MayBeCompleted,
        Self::Signals,
        Self::Barrier,
        Self::WaitsFor,
        Self::NotFollowed,
        Self::InOrder,
        Self::OutOfOrder,
        Self::List,
        Self::Executes,
        Self::Shares,
        Self::Resets,
        Self::Limit,
    ];

    /// The `name` of its record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MayBeCompleted => "may be completed",
            Self::Signals => "signals",
            Self::Barrier => "barrier",
            Self::WaitsFor => "waits for",
            Self::NotFollowed => "not followed",
            Self::InOrder => "in order",
            Self::OutOfOrder => "out of order",
            Self::List => "list",
            Self::Executes => "executes",
            Self::Shares => "shares",
            Self::Resets => "resets",
            Self::Limit => "limit",
        }
    }
}

/// What a command did with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It read them.
    Read,
    /// It wrote them.
    Write,
    /// It is a kernel that was given them: it may have read any of them, or none.
    MayRead,
    /// Likewise, and it may also have written any of them.
    MayWrite,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::MayRead, Self::MayWrite];

    /// The `name` of its record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::MayRead => "may read",
            Self::MayWrite => "may write",
        }
    }

    /// Whether it wrote, or may have.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::MayWrite)
    }

    /// Whether it is known to have accessed all of the bytes.
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Rows of bytes. They do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first byte.
    pub offset: u64,
    /// The bytes of a row.
    pub length: u64,
    /// Bytes from the first one of a row to that of the next.
    pub pitch: u64,
    /// The number of rows.
    pub count: u64,
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
    pub result: ResultCode,
    /// The answers in the caller's memory; empty unless the call succeeded.
    pub values: Values,
}

impl Exit {
    /// The call, decoded.
    pub fn returned(&self) -> Returned {
        let Self { function, call, tid, time, result, ref values } = *self;
        Returned { function, call, tid, time, result, answer: Answer::from_call(function, values) }
    }
}
