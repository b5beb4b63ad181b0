//! Calls that have begun and not returned, with what their return will need.

use std::{collections::BTreeMap, fmt};

use urscope_schema::{
    api::Function,
    call::Nanos,
    handle::{Handle, Kind},
};

use super::{
    ProcessId,
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
#[derive(Clone, Default)]
pub(crate) struct PendingCalls {
    all: Table<u64, Box<PendingCall>>,
    /// Those that began in the [usual](super::usual) way, up to [`USUAL`]. None of them has the number of another call.
    usual: Vec<UsualCall>,
}

/// How many usual calls of a process are kept in few words, and are found by looking at all of them.
const USUAL: usize = 8;

/// A call that began in the [usual](super::usual) way, in the process that it is kept in: a get or a put of handle data of memory.
///
/// One structure for both, and no value in another, so that it is stored field by field: a copy of what has just been stored in other sizes
/// has to wait until all stores before it have reached the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsualCall {
    pub(super) call: u64,
    pub(super) time: Nanos,
    pub(super) stack: Option<u64>,
    /// Of a get, the memory starts there; of a put, the handle data lies there.
    pub(super) subject: u64,
    /// Which life of that.
    pub(super) serial: Serial,
    /// Of a get.
    pub(super) context: Option<u64>,
    /// Where the memory lies among the allocations, or the handle data among the handles.
    pub(super) slot: Slot,
    pub(super) tid: u32,
    pub(super) gets: bool,
}

impl UsualCall {
    /// The function that is called.
    #[inline]
    pub(super) const fn function(&self) -> Function {
        if self.gets { Function::urIPCGetMemHandleExp } else { Function::urIPCPutMemHandleExp }
    }

    /// Where it began.
    #[inline]
    pub(super) const fn place(&self, process: ProcessId) -> Place {
        let (call, function) = (Some(self.call), Some(self.function()));
        Place { process, tid: self.tid, time: self.time, call, function, stack: self.stack }
    }

    /// The call as others are kept.
    pub(super) fn pending(&self, process: ProcessId) -> PendingCall {
        let Self { subject, serial, slot, context, .. } = *self;
        let kind = Kind::MemHandle;
        let operation = if self.gets {
            let (value, exported, slot) = (Some(subject), Some(serial), Some(slot));
            Operation::Get { kind, value, exported, slot, context, dangling: None }
        } else {
            Operation::Put { handle: Handle { kind, value: subject }, serial, slot }
        };
        PendingCall { place: self.place(process), operation }
    }
}

/// The calls in the order of their numbers, in whichever way each is kept. They are shown as those of an unknown process.
impl fmt::Debug for PendingCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = self.usual.iter().map(|usual| (usual.call, usual.pending(ProcessId::UNKNOWN)));
        let others = self.all.iter().map(|(call, pending)| {
            let place = Place { process: ProcessId::UNKNOWN, ..pending.place };
            (call, PendingCall { place, operation: pending.operation.clone() })
        });
        f.debug_map().entries(usual.chain(others).collect::<BTreeMap<_, _>>()).finish()
    }
}

/// Memory for calls, of all processes.
#[derive(Clone, Default)]
pub(crate) struct SparePlaces {
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    places: Vec<Box<PendingCall>>,
}

/// What is in spare places has no meaning.
impl fmt::Debug for SparePlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparePlaces").finish_non_exhaustive()
    }
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
        self.usual.retain(|usual| usual.call != call);
        self.all.insert(call, pending);
    }

    /// Whether a call with that number can begin in the usual way.
    #[inline]
    pub(super) fn has_room_for(&self, call: u64) -> bool {
        let is_free = self.usual.len() < USUAL && self.usual.iter().all(|usual| usual.call != call);
        is_free && (self.all.len() == 0 || !self.all.contains(call))
    }

    /// A call has begun in the usual way, for which there is room.
    #[expect(clippy::inline_always, reason = "the call is stored where it stays")]
    #[inline(always)]
    pub(super) fn add_usual(&mut self, call: UsualCall) {
        if self.usual.len() == self.usual.capacity() {
            self.make_room();
        }
        self.usual.push(call);
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        self.usual.reserve_exact(self.usual.len().max(1));
    }

    /// The call with that number, if it began in the usual way, and its index for [`Self::remove_usual`].
    #[inline]
    pub(super) fn usual(&self, call: u64) -> Option<(usize, &UsualCall)> {
        // Of one thread, the latest returns first.
        self.usual.iter().enumerate().rev().find(|(_, usual)| usual.call == call)
    }

    /// The only call, if it has that number and began in the usual way.
    #[inline]
    pub(super) fn only_usual(&self, call: u64) -> Option<UsualCall> {
        match *self.usual {
            [only] if only.call == call => Some(only),
            _ => None,
        }
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.usual.is_empty() && self.all.len() == 0
    }

    /// A call that began in the usual way has returned.
    #[inline]
    pub(super) fn remove_usual(&mut self, index: usize) {
        if index + 1 == self.usual.len() {
            self.usual.pop();
        } else if index < self.usual.len() {
            self.usual.swap_remove(index);
        }
    }

    /// A call has returned.
    #[inline]
    pub(super) fn remove(&mut self, call: u64) -> Option<Box<PendingCall>> {
        self.all.remove(call)
    }

    /// Frees the memory that no call needs now.
    pub(super) fn give_back(&mut self) {
        self.all.give_back();
        if self.usual.is_empty() {
            self.usual = Vec::new();
        }
    }

    /// All but those that began in the usual way, in no order.
    pub(crate) fn unusual(&self) -> impl Iterator<Item = &PendingCall> {
        self.all.values().map(|pending| &**pending)
    }

    /// Where all of them began that are those of a process, in no order.
    pub(super) fn places(&self, process: ProcessId) -> impl Iterator<Item = Place> {
        self.usual.iter().map(move |usual| usual.place(process)).chain(self.unusual().map(|pending| pending.place))
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
    use super::*;

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
            assert_eq!(calls.unusual().count(), 100);
            for call in (0..100).rev().step_by(2).chain((0..100).step_by(2)) {
                let found = calls.remove(call).unwrap();
                assert_eq!(found.place.time, Nanos(round * 1000 + call));
                spare_places.give(found);
                assert!(calls.remove(call).is_none());
            }
        }
        assert!(calls.unusual().count() == 0 && spare_places.places.len() == SPARE);
    }
}
