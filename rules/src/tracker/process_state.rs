//! One process: what lives in it, which calls are under way, and what an argument of a call stands for.
//!
//! This module looks up and keeps; the moves are in [`super::moves`].

use std::collections::{BTreeMap, VecDeque};

use urscope_schema::{
    call::{Enter, Nanos},
    handle::{Handle, Kind},
};

use super::{
    End, Process, ProcessId,
    devices::WrongDevice,
    exports::ExportId,
    fact::{DanglingUse, Freed, Missing, OpenedHere, Stale, Target},
    hash::{Map, Set},
    ledger::Ledger,
    pace::Pace,
    received::{Denied, UnknownHandles},
    records::{Allocation, HandleData, Mapping, Object, Origin, Serial, Tombstones},
    slabs::Exposed,
};
use crate::{finding::Place, lifecycle::State};

/// What a forked child has from its parent.
#[derive(Debug, Default)]
pub(crate) enum Inherited {
    /// It is no child of a traced process.
    #[default]
    Nothing,
    /// What had lived in the parent.
    These(Set<Handle>),
    /// The parent was not traced, or its records are gone: every unknown handle may be the parent's.
    Anything,
}

impl Inherited {
    fn has(&self, handle: Handle) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(handles) => handles.contains(&handle),
            Self::Anything => true,
        }
    }
}

/// A context that was seen being created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextState {
    pub(crate) serial: Serial,
    pub(crate) references: u64,
    pub(crate) born: Place,
    /// Its device, if it has only one.
    pub(crate) device: Option<u64>,
}

/// A call that has not returned, and what its return will need.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) place: Place,
    pub(crate) operation: Operation,
    /// The device has said that it cannot share what the call is to share.
    pub(crate) denied: Option<Denied>,
    /// The call names another device than it should.
    pub(crate) wrong_device: Option<Box<WrongDevice>>,
}

/// What a call under way is about.
#[derive(Debug)]
pub(crate) enum Operation {
    Get {
        kind: Kind,
        pointer: Option<u64>,
        exported: Option<Serial>,
        context: Option<u64>,
        dangling: Option<Box<DanglingUse>>,
    },
    Put {
        handle: Handle,
        serial: Serial,
    },
    Make {
        kind: Kind,
        origin: Origin,
        context: Option<u64>,
        size: Option<u64>,
    },
    Refer {
        object: Handle,
        serial: Serial,
    },
    Unrefer {
        object: Handle,
        serial: Serial,
    },
    Open {
        kind: Kind,
        context: Option<u64>,
        fingerprint: Option<u64>,
        export: Option<ExportId>,
        stale: Option<Box<Stale>>,
        /// Where the handle data lie, and their size.
        data: Option<u64>,
        size: Option<u64>,
    },
    Close {
        pointer: u64,
        serial: Serial,
        taken: (Option<u64>, Place),
        accuse: bool,
    },
    Allocate {
        size: Option<u64>,
        device: Option<u64>,
    },
    Ask(Denied),
    /// A context is to be made, of this device if it is the only one.
    Context(Option<u64>),
    Free {
        freed: Box<Freed>,
    },
    /// A wait on the host for one event.
    Wait(Handle),
    /// A free of what is no memory of this process any more.
    FreeDangling(Box<DanglingUse>),
    Retain {
        context: u64,
        serial: Serial,
    },
    Release {
        context: u64,
        serial: Serial,
        last: bool,
    },
    Nothing,
}

/// All that is known of a process while it lives.
#[derive(Debug)]
pub(crate) struct ProcessState {
    pub(crate) process: Process,
    /// How it ended, and when.
    pub(crate) ended: Option<(End, Nanos)>,
    pub(crate) handles: Map<Handle, HandleData>,
    pub(crate) objects: Map<Handle, Object>,
    /// The events that were made without the IPC flag: their releases are not recorded, so the last few are kept.
    pub(crate) plain_events: VecDeque<(Handle, Serial)>,
    pub(crate) mappings: BTreeMap<u64, Mapping>,
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    /// The serials of `allocations` that are not freed.
    pub(crate) allocated: Set<Serial>,
    /// Those of `allocations` that are freed, in that order.
    pub(crate) freed: VecDeque<(u64, Serial)>,
    pub(crate) contexts: Map<u64, ContextState>,
    pub(crate) pending: Map<u64, PendingCall>,
    pub(crate) tombstones: Tombstones,
    pub(crate) inherited: Inherited,
    /// What its devices have said that they cannot share.
    pub(crate) denied: Vec<Denied>,
    pub(crate) strangers: UnknownHandles,
    /// What it opened of its own.
    pub(crate) opened_here: Option<OpenedHere>,
    /// What it showed beside what it exported.
    pub(crate) exposed: Option<Exposed>,
    /// Where handle data lay that was opened and that a traced process had exported.
    pub(crate) received: Set<u64>,
    /// What was got and put over and over.
    pub(crate) churned: Vec<ExportId>,
    pub(crate) pace: Pace,
    pub(crate) ledger: Ledger,
    pub(crate) missing: Missing,
    /// How many `urIPC*` calls have begun.
    pub(crate) ipc_calls: u64,
}

impl ProcessState {
    pub(crate) fn new(process: Process, inherited: Inherited) -> Self {
        Self {
            process,
            ended: None,
            handles: Map::default(),
            objects: Map::default(),
            plain_events: VecDeque::new(),
            mappings: BTreeMap::new(),
            allocations: BTreeMap::new(),
            allocated: Set::default(),
            freed: VecDeque::new(),
            contexts: Map::default(),
            pending: Map::default(),
            tombstones: Tombstones::default(),
            inherited,
            denied: Vec::new(),
            strangers: UnknownHandles::default(),
            opened_here: None,
            exposed: None,
            received: Set::default(),
            churned: Vec::new(),
            pace: Pace::default(),
            ledger: Ledger::default(),
            missing: Missing::default(),
            ipc_calls: 0,
        }
    }

    /// Whether it may have opened something on that host that is not known: it has not ended in order, or it is a copy of
    /// somebody unseen.
    pub(crate) fn may_open(&self, host: u64) -> bool {
        let known =
            matches!(self.ended, Some((End::Exited, _))) && self.process.forked_from != Some(ProcessId::UNKNOWN);
        self.process.host == host && !known
    }

    /// How many handles are not put, mappings not closed and shared objects not released.
    pub(crate) fn held(&self) -> u64 {
        let opens = self.mappings.values().flat_map(|mapped| &mapped.opens).map(|opens| opens.count).sum::<u64>();
        let objects = self.objects.values().filter(|object| object.origin != Origin::Plain).count();
        (self.handles.len() + objects) as u64 + opens
    }

    /// What a child that is forked now has from this process.
    pub(crate) fn bequest(&self) -> Inherited {
        let mine = self
            .handles
            .keys()
            .chain(self.objects.keys())
            .copied()
            .chain(self.mappings.keys().map(|value| Handle { kind: Kind::Mapping, value: *value }))
            // What is ended already may have been ended after the fork, for the child's trace begins a little later.
            .chain(self.tombstones.handles());
        match &self.inherited {
            _ if self.ended.is_some() => Inherited::Anything,
            Inherited::Anything => Inherited::Anything,
            Inherited::Nothing => Inherited::These(mine.collect()),
            Inherited::These(older) => Inherited::These(mine.chain(older.iter().copied()).collect()),
        }
    }

    /// Whether handle data has to be put: freeing the memory ends its handles, too.
    pub(crate) fn must_put(&self, handle: Handle, got: &HandleData) -> bool {
        handle.kind != Kind::MemHandle || got.exported.is_none_or(|serial| self.allocated.contains(&serial))
    }

    /// The state of an address.
    pub(crate) fn state(&self, handle: Handle) -> State {
        let alive = match handle.kind {
            kind if kind.shares().is_some() => self.handles.get(&handle).map(|got| got.state),
            Kind::PhysicalMem | Kind::Event => self.objects.get(&handle).map(|object| object.state),
            Kind::Mapping => self.mappings.get(&handle.value).map(|mapped| mapped.state),
            _ => None,
        };
        match alive {
            Some(state) => state,
            None if self.tombstones.get(handle).is_some() => State::Dead,
            None if self.inherited.has(handle) => State::Inherited,
            None => State::Unknown,
        }
    }

    /// The allocation that an address lies in.
    pub(crate) fn allocation_at(&self, pointer: u64) -> Option<(u64, &Allocation)> {
        self.allocation_around(pointer).filter(|(_, allocation)| allocation.freed.is_none())
    }

    /// The same, also if it is freed and its addresses have not been allocated again.
    fn allocation_around(&self, pointer: u64) -> Option<(u64, &Allocation)> {
        let (base, allocation) = self.allocations.range(..=pointer).next_back()?;
        let inside = pointer - base;
        (inside == 0 || allocation.size.is_some_and(|size| inside < size)).then_some((*base, allocation))
    }

    /// What was at an address at which there is no memory of this process any more: a mapping, known by its pointer, or USM.
    pub(crate) fn dangling(&self, pointer: u64) -> Option<DanglingUse> {
        let of = |kind, value| Handle { kind, value };
        let mapping = of(Kind::Mapping, pointer);
        let closed = self.tombstones.get(mapping).filter(|tombstone| !tombstone.excused).map(|tombstone| {
            let (died, size, fingerprint) = (tombstone.died, tombstone.size, tombstone.fingerprint);
            DanglingUse { pointer, was: mapping, died, size, fingerprint }
        });
        let freed = self.allocation_around(pointer).and_then(|(base, allocation)| {
            let (died, size) = (allocation.freed?, allocation.size);
            Some(DanglingUse { pointer, was: of(Kind::Usm, base), died, size, fingerprint: None })
        });
        closed.into_iter().chain(freed).max_by_key(|dangling| (dangling.died.time, dangling.died.call))
    }

    /// The open mapping that an address lies inside of, not at its start.
    pub(crate) fn mapping_around(&self, pointer: u64) -> Option<(u64, &Mapping)> {
        let (base, mapped) = self.mappings.range(..pointer).next_back()?;
        let inside = mapped.size.is_some_and(|size| pointer - base < size);
        (inside && mapped.state == State::Alive).then_some((*base, mapped))
    }

    /// The open mapping that an address lies in.
    pub(crate) fn mapping_at(&self, pointer: u64) -> Option<(u64, &Mapping)> {
        let exact = self.mappings.get(&pointer).filter(|mapped| mapped.state == State::Alive);
        exact.map(|mapped| (pointer, mapped)).or_else(|| self.mapping_around(pointer))
    }

    /// What lives at an address that a call takes for something of `kind`, if it is of another kind. Events without the IPC
    /// flag are left out, because their end is not recorded; and memory that is taken for a mapping or the reverse is a
    /// mistake of its own.
    pub(crate) fn of_another_kind(&self, kind: Kind, value: u64) -> Option<(Handle, Place)> {
        let handles = [Kind::MemHandle, Kind::PhysicalMemHandle, Kind::EventHandle].into_iter().filter_map(|kind| {
            let got = self.handles.get(&Handle { kind, value })?;
            (got.state == State::Alive).then_some((kind, got.born))
        });
        let objects = [Kind::PhysicalMem, Kind::Event].into_iter().filter_map(|kind| {
            let object = self.objects.get(&Handle { kind, value })?;
            let certain = kind == Kind::PhysicalMem || object.origin != Origin::Plain;
            (object.state == State::Alive && certain).then_some((kind, object.born))
        });
        let mapped = self.mappings.get(&value).filter(|mapped| mapped.state == State::Alive && kind != Kind::Usm);
        let mapping = mapped.and_then(Mapping::last_open).map(|born| (Kind::Mapping, born));
        let mut found = handles.chain(objects).chain(mapping).filter(|(found, _)| *found != kind);
        found.next().map(|(kind, born)| (Handle { kind, value }, born))
    }

    /// What the ended object of a call stands for.
    pub(crate) fn target(&self, kind: Kind, value: u64) -> Target<'_> {
        let handle = Handle { kind, value };
        let buried = |kind| self.tombstones.get(Handle { kind, value });
        let allocated = || self.allocations.get(&value).filter(|allocation| !allocation.dying);
        match kind {
            kind if kind.shares().is_some() => match (self.handles.get(&handle), buried(kind)) {
                (Some(got), _) => Target::Handle(got),
                (None, Some(tombstone)) => Target::Ended(tombstone),
                (None, None) => Target::Nothing,
            },
            Kind::PhysicalMem | Kind::Event => match (self.objects.get(&handle), buried(kind)) {
                (Some(object), _) => Target::Object(object),
                (None, Some(tombstone)) => Target::Ended(tombstone),
                (None, None) => Target::Nothing,
            },
            Kind::Mapping => match (self.mappings.get(&value), buried(kind), self.mapping_around(value)) {
                (Some(mapped), ..) => Target::Mapping(mapped),
                (None, Some(tombstone), _) => Target::Ended(tombstone),
                (None, None, Some((base, mapped))) => Target::Inside(base, mapped),
                (None, None, None) => allocated().map_or(Target::Nothing, Target::Allocation),
            },
            Kind::Usm => match (allocated(), self.mappings.get(&value), self.mapping_around(value)) {
                (Some(allocation), ..) => Target::Allocation(allocation),
                (None, Some(mapped), _) => Target::Mapping(mapped),
                (None, None, Some((base, mapped))) => Target::Inside(base, mapped),
                (None, None, None) => Target::Nothing,
            },
            _ => Target::Nothing,
        }
    }

    /// The call under way that began last.
    pub(crate) fn inside(&self) -> Option<Place> {
        self.pending.values().map(|pending| pending.place).max_by_key(|place| place.call)
    }
}

/// The place of a call's enter.
pub(crate) fn place_of(process: ProcessId, enter: &Enter) -> Place {
    let Enter { function, call, tid, time, values } = *enter;
    Place { process, tid, time, call: Some(call), function: Some(function), stack: values.stack }
}
