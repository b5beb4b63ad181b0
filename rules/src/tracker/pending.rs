//! Calls that have begun and not returned, with the data that their return needs.

use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{Create, Open, Operation, Requested};

use super::freeing::{Freed, Freeing, StillMapped};
use super::observations::{Altered, DanglingUse, Expired, Support};
use super::records::{self, ExportId, Life, MappedRange, Serial};
use crate::place::Place;

/// A call that has not returned.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// Where it began.
    pub place: Place,
    /// What it does.
    pub operation: Operation,
    /// What its return changes.
    pub change: PendingChange,
}

impl PendingCall {
    /// The open of handle data that it is, and what was known of that when it began.
    pub const fn open(&self) -> Option<(&Open, &PendingOpen)> {
        match (&self.operation, &self.change) {
            (Operation::Open(open), PendingChange::Open(pending)) => Some((open, pending)),
            _ => None,
        }
    }
}

/// The calls of a process that have not returned: no more than it has threads, unless returns were lost. The latest
/// returns first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingCalls {
    /// Their numbers, in the order of `calls`.
    numbers: Vec<u64>,
    calls: Vec<PendingCall>,
}

impl PendingCalls {
    /// Adds the call with a number, which has begun.
    #[inline]
    pub(super) fn add(&mut self, number: u64, place: Place, operation: &Operation, change: PendingChange) {
        if self.calls.is_empty() {
            // A vector would make room for four at once, and most processes have one.
            self.calls.reserve_exact(1);
        }
        self.numbers.push(number);
        self.calls.push(PendingCall { place, operation: *operation, change });
    }

    /// Takes the call with a number out, which has returned; `None` if its begin is missing.
    pub(super) fn take(&mut self, number: u64) -> Option<PendingCall> {
        let index = self.numbers.iter().rposition(|known| *known == number)?;
        self.numbers.swap_remove(index);
        if index == self.numbers.len() { self.calls.pop() } else { Some(self.calls.swap_remove(index)) }
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingCall> {
        self.calls.iter()
    }
}

/// What the return of a pending call changes.
#[derive(Clone, Debug)]
pub enum PendingChange {
    /// It gets handle data.
    Get {
        /// Of which kind.
        kind: Kind,
        /// Of which address or object.
        value: Option<u64>,
        /// Which life of that.
        exported: Option<Serial>,
        /// In which context.
        context: Option<u64>,
        /// The address is one that this process has freed or closed.
        dangling: Option<Box<DanglingUse>>,
    },
    /// It puts handle data.
    Put(Life),
    /// It puts handle data that more than one get has returned.
    PutOne(Life),
    /// A forked child puts its copy of what its parent got.
    PutInherited {
        /// Which.
        handle: Handle,
        /// The parent's get.
        born: Place,
    },
    /// It creates physical memory, an event or an event pool.
    Create(Create),
    /// It takes a reference to an object, a pool or a context.
    Retain(Life),
    /// It gives a reference to an object back.
    Release {
        /// Which.
        object: Life,
        /// Where physical memory was mapped when the release of its last reference began.
        mapped: Option<Box<StillMapped>>,
    },
    /// It maps physical memory at addresses from here on, which these ranges were unmapped from.
    Map(u64, MappedRange, Vec<(u64, MappedRange)>),
    /// It unmaps ranges, by their first addresses.
    Unmap(Vec<(u64, MappedRange)>),
    /// It unmaps unknown addresses, because its enter is missing.
    UnmapUnknown,
    /// It opens handle data.
    Open(PendingOpen),
    /// It closes a mapping.
    Close(Close),
    /// It allocates USM.
    Allocate(Requested),
    /// It creates a USM pool.
    CreatePool,
    /// It gives a reference to a pool back.
    ReleasePool {
        /// Which.
        pool: Life,
        /// The frees of all memory of the pool, if it is the last reference.
        frees: Vec<Free>,
    },
    /// It asks a device whether it can share something.
    Ask(Support),
    /// It creates a context, of this device if it is the only one.
    CreateContext(Option<u64>),
    /// It frees USM.
    Free(Free),
    /// It frees an address that this process has closed.
    FreeDangling(Box<DanglingUse>),
    /// It enqueues a command.
    Enqueue,
    /// It waits on the host for one event.
    Wait(Handle),
    /// It gives a reference to a context back.
    ReleaseContext {
        /// Which.
        context: Life,
        /// Whether a reference is given back, or all in it ends.
        how: Releasing,
        /// What ends with it, if it is the last reference.
        ends: Option<Ends>,
    },
    /// It takes a reference to an object of this kind, which is not known yet.
    RetainMade(Kind),
    /// It takes a reference to the context that this device has in the process, which is not known yet.
    RetainPrimary(u64),
    /// Nothing that the tracker follows.
    Nothing,
}

/// How a context is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Releasing {
    /// A reference to it is given back.
    Reference,
    /// All in it ends, and the references stay.
    Contents,
}

/// What ends with a context.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// The memory that others have open, which may live on.
    pub shared: Vec<Freed>,
    /// The frees of the memory that it owns.
    pub frees: Vec<Free>,
}

/// A close of a mapping.
#[derive(Clone, Debug)]
pub struct Close {
    /// The start of the mapping.
    pub pointer: u64,
    /// Which life of that.
    pub serial: Serial,
    /// The open that it ends.
    pub open: records::Open,
    /// It is closed in a wrong way, which was reported.
    pub wrongly: bool,
}

/// A free of USM.
#[derive(Clone, Debug)]
pub struct Free {
    /// The start of the allocation.
    pub pointer: u64,
    /// Which life of that.
    pub serial: Serial,
    /// How it is freed.
    pub how: Freeing,
    /// What depended on it when the call began, if anything did.
    pub dependent: Option<Box<Freed>>,
}

/// An open of handle data.
#[derive(Clone, Debug, Default)]
pub struct PendingOpen {
    /// The export of the bytes.
    pub export: Option<ExportId>,
    /// The latest get of it when the call began.
    pub got: Option<Place>,
    /// The handle data had expired when the call began.
    pub expired: Option<Box<Expired>>,
    /// The bytes are known but for a few.
    pub altered: Option<Box<Altered>>,
}
