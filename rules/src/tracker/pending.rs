//! Calls that have begun and not returned, with what their return will need.

use urscope_schema::handle::{Handle, Kind};

use super::{
    exports::ExportId,
    fact::{DanglingUse, Expired, Freed, Freeing, StillMapped, Support},
    records::{MappedRange, Open, Origin, Requested, Serial},
    table::{Slot, Table},
};
use crate::finding::Place;

/// A call that has not returned.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// Where it began.
    pub place: Place,
    /// What it is about.
    pub operation: Operation,
}

/// The calls of a process that have not returned. They stay where they are, in memory that is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingCalls {
    all: Table<u64, Box<PendingCall>>,
}

/// Memory for calls, of all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparePlaces {
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    places: Vec<Box<PendingCall>>,
}

/// How many spare places are kept.
const SPARE: usize = 64;

impl SparePlaces {
    /// A place for a call that begins at `place`: what it is about is written there. It owns what its last call has left.
    #[inline]
    pub(super) fn take(&mut self, place: Place) -> Box<PendingCall> {
        match self.places.pop() {
            Some(mut spare) => {
                spare.place = place;
                spare
            }
            None => Box::new(PendingCall { place, operation: Operation::Nothing }),
        }
    }

    /// Gives the place of a call that has returned back.
    #[inline]
    pub(super) fn give(&mut self, place: Box<PendingCall>) {
        if self.places.len() < SPARE {
            self.places.push(place);
        }
    }
}

impl PendingCalls {
    /// A call has begun. An earlier one with the same number is forgotten.
    #[inline]
    pub(super) fn insert(&mut self, call: u64, pending: Box<PendingCall>) {
        self.all.insert(call, pending);
    }

    /// A call has returned.
    #[inline]
    pub(super) fn remove(&mut self, call: u64) -> Option<Box<PendingCall>> {
        self.all.remove(call)
    }

    /// All of them, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &PendingCall> {
        self.all.values().map(|pending| &**pending)
    }
}

/// What a call under way is about.
#[derive(Clone, Debug)]
pub enum Operation {
    /// It gets handle data.
    Get {
        /// Of which kind.
        kind: Kind,
        /// Of which address or object.
        value: Option<u64>,
        /// Which life of that.
        exported: Option<Serial>,
        /// Where that lies among the allocations of the process, if it is memory.
        slot: Option<Slot>,
        /// In which context.
        context: Option<u64>,
        /// The address is one that this process has freed or closed.
        dangling: Option<Box<DanglingUse>>,
    },
    /// It puts handle data.
    Put {
        /// Which.
        handle: Handle,
        /// Which life of that.
        serial: Serial,
        /// Where it lies among the handles of the process.
        slot: Slot,
    },
    /// It puts handle data that another get has returned, too.
    PutOne {
        /// Which.
        handle: Handle,
        /// Which life of that.
        serial: Serial,
    },
    /// A forked child puts its copy of what its parent got.
    PutInherited {
        /// Which.
        handle: Handle,
        /// The parent's get.
        born: Place,
    },
    /// It creates physical memory or an event.
    Create {
        /// Of which kind.
        kind: Kind,
        /// With the IPC flag or without.
        origin: Origin,
        /// In which context.
        context: Option<u64>,
        /// Of how many bytes.
        size: Option<u64>,
    },
    /// It takes a reference to an object.
    Retain {
        /// Which.
        object: Handle,
        /// Which life of that.
        serial: Serial,
    },
    /// It gives a reference to an object back.
    Release {
        /// Which.
        object: Handle,
        /// Which life of that.
        serial: Serial,
        /// Where physical memory was mapped when the release of its last reference began.
        mapped: Option<Box<StillMapped>>,
    },
    /// It maps physical memory at addresses from here on.
    Map(u64, MappedRange),
    /// It unmaps these, by their first addresses.
    Unmap(Vec<(u64, MappedRange)>),
    /// It unmaps what is not known, because its enter is missing.
    UnmapUnknown,
    /// It opens handle data.
    Open(Opens),
    /// It closes a mapping.
    Close {
        /// The start of the mapping.
        pointer: u64,
        /// Which life of that.
        serial: Serial,
        /// The open that it ends.
        open: Open,
        /// It is closed in a wrong way, which is reported.
        wrongly: bool,
    },
    /// It allocates USM.
    Allocate(Requested),
    /// It creates a USM pool.
    CreatePool,
    /// It takes a reference to a pool.
    RetainPool {
        /// Which.
        pool: u64,
        /// Which life of that.
        serial: Serial,
    },
    /// It gives a reference to a pool back.
    ReleasePool {
        /// Which.
        pool: u64,
        /// Which life of that.
        serial: Serial,
        /// The frees of its memory, if it is the last reference.
        frees: Vec<Free>,
    },
    /// It asks a device whether that can share something.
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
    /// It takes a reference to a context.
    RetainContext {
        /// Which.
        context: u64,
        /// Which life of that.
        serial: Serial,
    },
    /// It gives a reference to a context back.
    ReleaseContext {
        /// Which.
        context: u64,
        /// Which life of that.
        serial: Serial,
        /// The memory in it that others depend on, if it is the last reference.
        shared: Option<Vec<Freed>>,
    },
    /// Nothing that the tracker follows.
    Nothing,
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
#[derive(Clone, Debug)]
pub struct Opens {
    /// What is to be made: a mapping, physical memory or an event.
    pub kind: Kind,
    /// In which context.
    pub context: Option<u64>,
    /// On which device; of an event, none.
    pub device: Option<u64>,
    /// The fingerprint of the handle data.
    pub fingerprint: Option<u64>,
    /// The export that the bytes are of.
    pub export: Option<ExportId>,
    /// The handle data had expired when the call began.
    pub expired: Option<Box<Expired>>,
    /// The process and the address in it that the handle data names.
    pub named: Option<(u64, u64)>,
    /// The address of the handle data.
    pub data: Option<u64>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// It is a descriptor that an allocation of Level Zero imports.
    pub imports: bool,
}

#[cfg(test)]
mod tests {
    use urscope_schema::call::Nanos;

    use super::*;
    use crate::tracker::ProcessId;

    fn place(time: u64) -> Place {
        let (process, time) = (ProcessId(0), Nanos(time));
        Place { process, tid: 0, time, call: None, function: None, stack: None }
    }

    #[test]
    fn few_and_many_calls_are_found_by_their_numbers() {
        let (mut calls, mut spare_places) = (PendingCalls::default(), SparePlaces::default());
        for round in 0..3 {
            for call in 0..100 {
                let spare = spare_places.take(place(round));
                calls.insert(call, spare);
                let spare = spare_places.take(place(round * 1000 + call));
                calls.insert(call, spare);
            }
            assert_eq!(calls.values().count(), 100);
            for call in (0..100).rev().step_by(2).chain((0..100).step_by(2)) {
                let found = calls.remove(call).unwrap();
                assert_eq!(found.place.time, Nanos(round * 1000 + call));
                spare_places.give(found);
                assert!(calls.remove(call).is_none());
            }
        }
        assert!(calls.values().count() == 0 && spare_places.places.len() == SPARE);
    }
}
