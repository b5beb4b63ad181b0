//! Commands on shared memory that a host does not know to have completed: plain data.

use smallvec::SmallVec;
use urscope_schema::{call::Nanos, handle::Handle};

use super::records::{Position, Serial};
use crate::place::{Place, ProcessId};

/// Bytes of shared memory that a command accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The process that made the memory, and which life of its address.
    pub(super) memory: (ProcessId, Serial),
    /// The first byte and the one behind the last, from the start of the memory on. A kernel may access all from its
    /// pointer on.
    pub(super) bytes: [u64; 2],
    pub(super) writes: bool,
    /// What the memory is in the process of the command.
    pub(super) handle: Handle,
}

impl Part {
    /// How many bytes both access, if one of them writes.
    pub(super) fn conflict(&self, other: &Self) -> Option<u64> {
        let [start, end] = self.bytes;
        let [its_start, its_end] = other.bytes;
        let is_conflict = self.memory == other.memory && (self.writes || other.writes);
        let common = end.min(its_end).checked_sub(start.max(its_start));
        common.filter(|bytes| is_conflict && *bytes > 0)
    }

    /// Whether they have bytes in common though each kernel accesses no more than the byte at its pointer.
    pub(super) fn is_at_pointer(&self, other: &Self) -> bool {
        let end = |[start, end]: [u64; 2]| if end == u64::MAX { start.saturating_add(1) } else { end };
        self.bytes[0].max(other.bytes[0]) < end(self.bytes).min(end(other.bytes))
    }

    pub(super) fn access_at(self, place: Place) -> UnorderedAccess {
        UnorderedAccess { place, memory: self.handle, writes: self.writes }
    }
}

/// A command that its host does not know to have completed.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub(super) place: Place,
    pub(super) position: Position,
    pub(super) parts: SmallVec<[Part; 2]>,
    pub(super) is_kernel: bool,
    /// It may wait for something that is not followed.
    pub(super) is_only_counted: bool,
    /// The processes that have read what it writes while it was not known to have completed.
    pub(super) read_by: SmallVec<[ProcessId; 2]>,
    /// The commands of other processes that were enqueued since.
    pub(super) since: Vec<Since>,
    /// Whether it was enqueued since one of another process.
    pub(super) is_second: bool,
    /// Its context has ended: it may have completed by then.
    pub(super) may_be_over: bool,
}

/// How many pairs of commands of two processes no host has ordered, as far as is known, and were not judged.
#[derive(Clone, Debug, Default)]
pub struct NotJudged {
    /// Of commands that something unknown may have ordered.
    pub pairs: u64,
    /// Of a kernel and a command on the byte at its pointer.
    pub at_pointers: KernelPairs,
    /// Of a kernel and a command on bytes behind its pointer.
    pub behind_pointers: KernelPairs,
}

/// Pairs of commands of two processes, one of which is a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelPairs {
    /// How many.
    pub count: u64,
    /// The first one.
    pub first: Option<[Place; 2]>,
}

impl NotJudged {
    pub(super) fn add(&mut self, more: &Self) {
        self.pairs += more.pairs;
        self.at_pointers.add(more.at_pointers);
        self.behind_pointers.add(more.behind_pointers);
    }
}

impl KernelPairs {
    pub(super) fn add(&mut self, more: Self) {
        self.count += more.count;
        self.first = self.first.or(more.first);
    }
}

/// A command of another process on the same bytes, which was enqueued since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) first: UnorderedAccess,
    pub(super) second: UnorderedAccess,
    pub(super) bytes: u64,
}

/// Two commands of two processes on the same bytes, one of which writes, that nothing orders.
#[derive(Clone, Copy, Debug)]
pub struct Unordered {
    /// The one that was enqueued first.
    pub first: UnorderedAccess,
    /// The other one.
    pub second: UnorderedAccess,
    /// How many bytes both access.
    pub bytes: u64,
    /// When the process of the first one knew that it had completed; `None` if it ended without having waited.
    pub known: Option<Nanos>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct UnorderedAccess {
    /// The call that enqueued it.
    pub place: Place,
    /// What the memory is in its process.
    pub memory: Handle,
    /// Whether it writes there.
    pub writes: bool,
}
