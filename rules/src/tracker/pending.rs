//! Calls that have begun and not returned, with what their return will need.

use urscope_schema::handle::{Handle, Kind};

use super::{
    exports::ExportId,
    fact::{DanglingUse, Expired, Freed, Freeing, StillMapped, Support},
    hash::Map,
    records::{MappedRange, Open, Origin, Requested, Serial},
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

/// The calls of a process that have not returned.
///
/// Most processes have few at a time, which are found in a short list. They stay where they are, in memory that is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingCalls {
    few: Vec<(u64, Box<PendingCall>)>,
    /// Those for which there was no room in the list.
    many: Map<u64, Box<PendingCall>>,
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    spare: Vec<Box<PendingCall>>,
}

/// The length of the list, and how many spare places are kept.
const FEW: usize = 16;

impl PendingCalls {
    /// A call has begun. An earlier one with the same number is forgotten.
    pub(super) fn insert(&mut self, call: u64, pending: PendingCall) {
        let pending = match self.spare.pop() {
            Some(mut place) => {
                *place = pending;
                place
            }
            None => Box::new(pending),
        };
        if let Some((_, same)) = self.few.iter_mut().find(|(known, _)| *known == call) {
            *same = pending;
        } else if self.few.len() < FEW && !self.many.contains_key(&call) {
            self.few.push((call, pending));
        } else {
            self.many.insert(call, pending);
        }
    }

    /// A call has returned.
    pub(super) fn remove(&mut self, call: u64) -> Option<Box<PendingCall>> {
        if let Some(index) = self.few.iter().rposition(|(known, _)| *known == call) {
            return Some(self.few.swap_remove(index).1);
        }
        if self.many.is_empty() { None } else { self.many.remove(&call) }
    }

    /// Gives the place of a call that has returned back.
    pub(super) fn reuse(&mut self, place: Box<PendingCall>) {
        if self.spare.len() < FEW {
            self.spare.push(place);
        }
    }

    /// All of them, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &PendingCall> {
        self.few.iter().map(|(_, pending)| &**pending).chain(self.many.values().map(|pending| &**pending))
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

    fn pending(time: u64) -> PendingCall {
        let (process, time) = (ProcessId(0), Nanos(time));
        let place = Place { process, tid: 0, time, call: None, function: None, stack: None };
        PendingCall { place, operation: Operation::Nothing }
    }

    #[test]
    fn few_and_many_calls_are_found_by_their_numbers() {
        let mut calls = PendingCalls::default();
        for round in 0..3 {
            for call in 0..100 {
                calls.insert(call, pending(round));
                calls.insert(call, pending(round * 1000 + call));
            }
            assert_eq!(calls.values().count(), 100);
            for call in (0..100).rev().step_by(2).chain((0..100).step_by(2)) {
                let found = calls.remove(call).unwrap();
                assert_eq!(found.place.time, Nanos(round * 1000 + call));
                calls.reuse(found);
                assert!(calls.remove(call).is_none());
            }
        }
        assert!(calls.values().count() == 0 && calls.spare.len() == FEW);
    }
}
