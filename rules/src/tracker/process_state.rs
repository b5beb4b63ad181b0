//! The state of a process: what is alive in it, its pending calls, and which objects the arguments of calls refer to.
//!
//! This module looks up and keeps; the transitions are in [`super::transitions`].

use std::collections::VecDeque;

use urscope_schema::api::{Function, Promise};
use urscope_schema::call::Nanos;
use urscope_schema::handle::{Handle, Kind};

use super::in_flight::Unknown;
use super::lists::Lists;
use super::maps::{Map, Set};
use super::observations::{Altered, DanglingUse, KindMismatch};
use super::process::{End, Missing, Process};
use super::queues::{Front, Queues};
use super::records::{
    Allocation, Command, Context, Device, DeviceError, ExportId, HandleData, MappedRange, Mapping, Object, Origin,
    OwnDescriptor, Pool, Replaced, Serial, Tombstone,
};
use super::small_maps::{ByAddress, SmallMap};
use super::{mapped::MappedRanges, pending::PendingCalls, tombstones::Tombstones};
use crate::lifecycle::State;
use crate::place::{Place, ProcessId};

/// What a forked child inherits from its parent.
#[derive(Clone, Debug, Default)]
pub(crate) enum Inherited {
    /// It is no child of a traced process.
    #[default]
    Nothing,
    /// The handles that were alive in the parent.
    These(Set<Handle>),
    /// The parent was not traced, or its records are gone, or the process was not traced from its start:
    /// every unknown handle may be inherited.
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

/// What an argument refers to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'t> {
    /// Handle data.
    Handle(&'t HandleData),
    /// A mapping.
    Mapping(&'t Mapping),
    /// An address inside the open mapping that starts there.
    Inside(u64, &'t Mapping),
    /// An object that has ended.
    Ended(&'t Tombstone),
    /// Physical memory or an event.
    Object(&'t Object),
    /// USM of this process.
    Allocation(&'t Allocation),
    /// An object of another kind.
    OtherKind(KindMismatch),
    /// Nothing that the tracker knows.
    Nothing,
}

/// The state of a process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessState {
    pub(crate) process: Process,
    /// How it ended, and when.
    pub(crate) ended: Option<(End, Nanos)>,
    /// When an observer last saw it running, and when one first saw that it had ended.
    pub(crate) observed: Option<(Nanos, Nanos)>,
    /// How many `urIPC*` calls have begun.
    pub(crate) ipc_calls: u64,
    /// The function of the latest of them.
    pub(crate) latest_ipc: Option<Function>,
    /// The calls that have begun and not returned.
    pub(crate) pending: PendingCalls,
    pub(crate) handles: SmallMap<Handle, HandleData>,
    /// Opened memory, by its first address.
    pub(crate) mappings: ByAddress<Mapping>,
    /// Mappings that were never closed and went with their contexts: another one is at the address now.
    pub(crate) replaced: Vec<(u64, Mapping)>,
    /// USM, by its first address.
    pub(crate) allocations: ByAddress<Allocation>,
    /// The freed ones of `allocations`, in the order of their frees.
    pub(crate) freed: VecDeque<(u64, Serial)>,
    pub(crate) objects: Map<Handle, Object>,
    /// The events that were made without the IPC flag: their releases are not recorded, so the last few are kept.
    pub(crate) plain_events: VecDeque<(Handle, Serial)>,
    pub(crate) contexts: Map<u64, Context>,
    pub(crate) pools: Map<u64, Pool>,
    /// Where physical memory is mapped.
    pub(crate) mapped: MappedRanges,
    /// Where it was unmapped, and nothing was mapped since. The place of a range is its unmap.
    pub(crate) unmapped: MappedRanges,
    /// What was exported, and has been unmapped, where other memory is mapped since.
    pub(crate) replaced_memory: Map<Serial, Replaced>,
    /// When its host last knew that commands had completed, or could know it.
    pub(super) waited: Nanos,
    /// When that may have been for all of them.
    pub(super) waited_for_all: Nanos,
    /// The latest recorded commands, in the order of time.
    pub(crate) commands: VecDeque<Command>,
    /// Those on shared memory that the host does not know to have completed, in the same order.
    pub(super) unknown: VecDeque<Unknown>,
    pub(super) queues: Queues,
    pub(super) lists: Lists,
    /// What is in front of a command that writes to memory which may be the host's: the host may look at that.
    pub(super) told_to_host: Front,
    /// When it last used an event that processes share.
    pub(super) event_used: Nanos,
    /// Whether any of its events may be shared: they are of a pool.
    pub(super) shares_event_pools: bool,
    /// The descriptors of physical memory that the program is to close, by their numbers: what was returned last under
    /// each. Who closes them is not recorded.
    pub(crate) descriptors: Map<u32, OwnDescriptor>,
    pub(crate) device_error: Option<DeviceError>,
    pub(crate) tombstones: Tombstones,
    /// The addresses of opened handle data that a traced process had exported, with the export.
    pub(crate) opened_at: Map<u64, ExportId>,
    /// The fingerprints of opened handle data that was changed on its way, with what is known of it.
    pub(crate) altered: Map<u64, Altered>,
    /// The sizes of handle data that its gets have returned, each with the first such get.
    pub(crate) data_sizes: Vec<DataSize>,
    /// The file names of the libraries of its adapters.
    pub(crate) adapters: Vec<Box<str>>,
    /// The devices, by their handles.
    pub(crate) devices: Map<u64, Device>,
    pub(crate) inherited: Inherited,
    pub(crate) missing: Missing,
}

/// A size of a kind of handle data that a get has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSize {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) got: Place,
}

/// The number of sizes that are stored for a process: one for each kind and adapter.
const MAX_DATA_SIZES: usize = 64;

impl ProcessState {
    pub(crate) fn new(process: Process, inherited: Inherited, tombstones: Tombstones) -> Self {
        Self {
            process,
            ended: None,
            observed: None,
            ipc_calls: 0,
            latest_ipc: None,
            pending: PendingCalls::default(),
            handles: SmallMap::default(),
            mappings: ByAddress::default(),
            replaced: Vec::new(),
            allocations: ByAddress::default(),
            freed: VecDeque::new(),
            objects: Map::default(),
            plain_events: VecDeque::new(),
            contexts: Map::default(),
            pools: Map::default(),
            mapped: MappedRanges::default(),
            unmapped: MappedRanges::default(),
            replaced_memory: Map::default(),
            commands: VecDeque::new(),
            unknown: VecDeque::new(),
            waited: Nanos(0),
            waited_for_all: Nanos(0),
            queues: Queues::default(),
            lists: Lists::default(),
            told_to_host: Front::default(),
            event_used: Nanos(0),
            shares_event_pools: false,
            descriptors: Map::default(),
            device_error: None,
            tombstones,
            opened_at: Map::default(),
            altered: Map::default(),
            data_sizes: Vec::new(),
            adapters: Vec::new(),
            devices: Map::default(),
            inherited,
            missing: Missing::default(),
        }
    }

    /// A get has returned a size of handle data.
    pub(super) fn note_data_size(&mut self, given: DataSize) {
        let is_known = |known: &DataSize| (known.kind, known.size) == (given.kind, given.size);
        if self.data_sizes.len() < MAX_DATA_SIZES && !self.data_sizes.iter().any(is_known) {
            self.data_sizes.reserve_exact(1);
            self.data_sizes.push(given);
        }
    }

    /// Whether it may have opened something on that host without a record: it did not exit, or it is a copy
    /// of an untraced process.
    pub(crate) fn may_open(&self, host: u64) -> bool {
        let known = matches!(self.ended, Some((End::Exited | End::Exec, _)))
            && self.process.forked_from != Some(ProcessId::UNKNOWN);
        self.process.host == host && !known
    }

    /// Whether it exists at a time. Unknown (`None`) if it was killed or became another program at an
    /// unknown moment after its last record, or if its trace is incomplete.
    pub(crate) fn is_there(&self, time: Nanos) -> Option<bool> {
        match (self.ended, self.observed) {
            (None, _) => Some(true),
            (Some((End::Exited, _)), _) => Some(false),
            (Some(_), Some((alive, _))) if time <= alive => Some(true),
            (Some(_), Some((_, gone))) if time > gone => Some(false),
            (Some(_), _) => None,
        }
    }

    /// Whether two handles are those of one device, perhaps in different interfaces.
    pub(crate) fn is_same_device(&self, one: u64, other: u64) -> bool {
        let native = |handle| self.devices.get(&handle).and_then(|device| device.native).unwrap_or(handle);
        one == other || native(one) == native(other)
    }

    /// The library of its adapter, if it has only one.
    pub(crate) fn only_adapter(&self) -> Option<&str> {
        match &*self.adapters {
            [only] => Some(only),
            _ => None,
        }
    }

    /// How many handles are not put, mappings not closed and shared objects not released. Handle data that no call
    /// gives back is left out.
    pub(crate) fn held(&self) -> u64 {
        let is_put = |data: &&HandleData| {
            !data.born.promises(Promise::PutIsOptional) || data.born.promises(Promise::HandlesAreDescriptors)
        };
        let opens = self.mappings.iter().map(|(_, mapping)| mapping.opens.len()).sum::<usize>();
        let objects = self.objects.values().filter(|object| object.origin != Origin::Plain).count();
        (self.handles.values().filter(is_put).count() + objects + opens) as u64
    }

    /// What a child inherits that was forked from this process at a time, which is not later than now: what
    /// may be alive in it, and what had ended by then.
    pub(crate) fn inherited_by_child(&self, forked: Option<Nanos>) -> (Inherited, Tombstones) {
        let over = forked.map_or_else(Tombstones::default, |forked| self.tombstones.until(forked));
        let mine = self
            .handles
            .keys()
            .chain(self.objects.keys())
            .copied()
            .chain(self.mappings.iter().map(|(value, _)| Handle { kind: Kind::Mapping, value }))
            // An object that has ended already may have ended after the fork, because the child's trace begins a
            // little later.
            .chain(self.tombstones.handles().filter(|handle| over.get(*handle).is_none()));
        let inherited = match &self.inherited {
            _ if self.ended.is_some() => Inherited::Anything,
            Inherited::Anything => Inherited::Anything,
            Inherited::Nothing => Inherited::These(mine.collect()),
            Inherited::These(older) => Inherited::These(mine.chain(older.iter().copied()).collect()),
        };
        (inherited, over)
    }

    /// Whether handle data has to be put: freeing the memory ends its handles, too.
    pub(crate) fn must_put(&self, handle: Handle, data: &HandleData) -> bool {
        let is_alive = |serial| data.pointer.is_some_and(|pointer| self.is_allocated(pointer, serial));
        handle.kind != Kind::MemHandle || data.exported.is_none_or(is_alive)
    }

    /// The exported allocation of handle data, as long as that lives.
    pub(crate) fn memory_of(&self, data: &HandleData) -> Option<&Allocation> {
        let (_, memory) = self.allocation_at(data.pointer?)?;
        (Some(memory.serial) == data.exported).then_some(memory)
    }

    /// The latest get of an object's handle data that is not put.
    pub(crate) fn latest_get(&self, is_of_it: impl Fn(&HandleData) -> bool) -> Option<Place> {
        let alive = self.handles.values().filter(|data| data.state == State::Alive && is_of_it(data));
        alive.map(|data| data.born).max_by_key(|born| (born.time, born.call))
    }

    /// Whether an address lies in the allocation of that life, and the allocation is not freed.
    pub(crate) fn is_allocated(&self, pointer: u64, serial: Serial) -> bool {
        self.allocation_at(pointer).is_some_and(|(_, allocation)| allocation.serial == serial)
    }

    /// The state of an address.
    pub(crate) fn state(&self, handle: Handle) -> State {
        let alive = match handle.kind {
            kind if kind.shares().is_some() => self.handles.get(&handle).map(|data| data.state),
            kind if kind.is_object() => self.objects.get(&handle).map(|object| object.state),
            Kind::Mapping => self.mappings.get(handle.value).map(|mapping| mapping.state),
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
        self.memory_around(pointer).filter(|(_, allocation)| allocation.freed.is_none())
    }

    /// The allocation that ends at an address where there never was anything, if all memory of the process is known.
    pub(super) fn allocation_that_ends_at(&self, end: u64) -> Option<(u64, &Allocation)> {
        let (base, memory) = self.allocation_at(end.checked_sub(1)?)?;
        let ends_there = memory.born.is_some() && memory.requested.size == Some(end - base);
        let is_all_known = matches!(self.inherited, Inherited::Nothing);
        let is_nothing = self.mapped.at(end).is_none() && self.dangling(end).is_none();
        (ends_there && is_all_known && is_nothing).then_some((base, memory))
    }

    /// The allocation that an address lies in, to be changed.
    pub(super) fn allocation_at_mut(&mut self, pointer: u64) -> Option<&mut Allocation> {
        let (base, _) = self.allocation_at(pointer)?;
        self.allocations.get_mut(base)
    }

    /// The allocation that an address lies in, even if it is freed, as long as its addresses have not been
    /// allocated again.
    fn memory_around(&self, pointer: u64) -> Option<(u64, &Allocation)> {
        self.allocations.at_or_below(pointer).filter(|(base, allocation)| allocation.covers(pointer - base))
    }

    /// The ended mapping or USM of this process at an address. A mapping is known by its pointer.
    pub(crate) fn dangling(&self, pointer: u64) -> Option<DanglingUse> {
        let mapping = Handle { kind: Kind::Mapping, value: pointer };
        let closed = self.tombstones.get(mapping).filter(|tombstone| !tombstone.excused);
        let closed = closed.map(|tombstone| tombstone.used_at(pointer, mapping));
        DanglingUse::latest(closed.into_iter().chain(self.freed_at(pointer).map(|(_, freed)| freed)))
    }

    /// The mapping, exported USM or mapped physical memory of this process that an address was in, if nothing is there
    /// now.
    pub(crate) fn ended_at(&self, pointer: u64) -> Option<DanglingUse> {
        let is_live = self.mapping_at(pointer).is_some() || self.allocation_at(pointer).is_some();
        if is_live || self.mapped.at(pointer).is_some() {
            return None;
        }
        let closed = self.tombstones.mapping_around(pointer);
        let (memory, freed) = self.freed_at(pointer).unzip();
        let unmapped = self.unmapped.at(pointer).map(|range| {
            let was = range.memory;
            DanglingUse { pointer, was, died: range.place, size: None, fingerprint: None }
        });
        let last = DanglingUse::latest(closed.into_iter().chain(freed).chain(unmapped))?;
        // Memory that was never shared is none of urscope's business.
        (last.was.kind != Kind::Usm || memory.is_some_and(|memory| memory.freed_exported)).then_some(last)
    }

    /// The freed allocation that an address lies in.
    fn freed_at(&self, pointer: u64) -> Option<(&Allocation, DanglingUse)> {
        let (base, allocation) = self.memory_around(pointer)?;
        let died = allocation.freed?;
        let size = allocation.requested.size;
        let was = Handle { kind: Kind::Usm, value: base };
        Some((allocation, DanglingUse { pointer, was, died, size, fingerprint: None }))
    }

    /// The open mapping that an address lies inside of, not at its start.
    pub(crate) fn mapping_around(&self, pointer: u64) -> Option<(u64, &Mapping)> {
        let (base, mapping) = self.mappings.range(..pointer).next_back()?;
        let inside = mapping.extent.or(mapping.size).is_some_and(|size| pointer - base < size);
        (inside && mapping.state == State::Alive).then_some((base, mapping))
    }

    /// The open mapping that an address lies in.
    pub(crate) fn mapping_at(&self, pointer: u64) -> Option<(u64, &Mapping)> {
        let exact = self.mappings.get(pointer).filter(|mapping| mapping.state == State::Alive);
        exact.map(|mapping| (pointer, mapping)).or_else(|| self.mapping_around(pointer))
    }

    /// Whether an address is that of imported memory.
    pub(crate) fn is_imported(&self, pointer: u64) -> bool {
        self.mappings.get(pointer).is_some_and(|mapping| mapping.imported && mapping.state == State::Alive)
    }

    /// The physical memory that the address of a get of Level Zero refers to: by its handle, or by an
    /// address that it is mapped at.
    pub(crate) fn physical_at(&self, value: u64) -> Option<(Handle, &Object)> {
        let by_handle = Handle { kind: Kind::PhysicalMem, value };
        let memory = if self.objects.contains_key(&by_handle) { by_handle } else { self.mapped.at(value)?.memory };
        Some((memory, self.objects.get(&memory)?))
    }

    /// The physical memory that is mapped at an address, if it was opened, or handle data was got for it.
    pub(super) fn shared_physical_at(&self, address: u64) -> Option<(&MappedRange, &Object)> {
        let range = self.mapped.at(address)?;
        let object = self.objects.get(&range.memory).filter(|object| object.serial == range.serial)?;
        object.is_shared().then_some((range, object))
    }

    /// The live object at an address that a call takes as a `kind`, if it is of another kind. Events
    /// without the IPC flag are ignored, because their end is not recorded. Memory that is passed as a
    /// mapping, or the reverse, has rules of its own.
    pub(crate) fn of_another_kind(&self, kind: Kind, value: u64) -> Option<KindMismatch> {
        let handles = [Kind::MemHandle, Kind::PhysicalMemHandle, Kind::EventHandle, Kind::EventPoolHandle]
            .into_iter()
            .filter_map(|kind| {
                let data = self.handles.get(&Handle { kind, value })?;
                (data.state == State::Alive).then_some((kind, data.born))
            });
        let objects = [Kind::PhysicalMem, Kind::Event, Kind::EventPool].into_iter().filter_map(|kind| {
            let object = self.objects.get(&Handle { kind, value })?;
            let certain = kind != Kind::Event || object.origin != Origin::Plain;
            (object.state == State::Alive && certain).then_some((kind, object.born))
        });
        let mapping = self.mappings.get(value).filter(|mapping| mapping.state == State::Alive && kind != Kind::Usm);
        let mapping = mapping.and_then(Mapping::first_open).map(|born| (Kind::Mapping, born));
        let (is, born) = handles.chain(objects).chain(mapping).find(|(found, _)| *found != kind)?;
        Some(KindMismatch { expected: kind, is: Handle { kind: is, value }, born, fingerprint: None })
    }

    /// The object that a call ends, unless it is of another kind.
    pub(crate) fn target(&self, kind: Kind, value: u64) -> Target<'_> {
        let ended = || self.tombstones.get(Handle { kind, value }).map_or(Target::Nothing, Target::Ended);
        let allocated = || self.allocations.get(value).filter(|allocation| !allocation.dying);
        let inside = || self.mapping_around(value).map(|(base, mapping)| Target::Inside(base, mapping));
        match kind {
            kind if kind.shares().is_some() => {
                self.handles.get(&Handle { kind, value }).map_or_else(ended, Target::Handle)
            }
            kind if kind.is_object() => self.objects.get(&Handle { kind, value }).map_or_else(ended, Target::Object),
            Kind::Mapping => match self.mappings.get(value).map_or_else(ended, Target::Mapping) {
                Target::Nothing => inside().or(allocated().map(Target::Allocation)).unwrap_or(Target::Nothing),
                known => known,
            },
            Kind::Usm => match allocated() {
                Some(allocation) => Target::Allocation(allocation),
                None => self.mappings.get(value).map(Target::Mapping).or_else(inside).unwrap_or(Target::Nothing),
            },
            _ => Target::Nothing,
        }
    }

    /// Whether objects may be alive in it that no record shows.
    pub(crate) const fn inherits_anything(&self) -> bool {
        matches!(self.inherited, Inherited::Anything)
    }

    /// The pending call with the highest number.
    pub(crate) fn inside(&self) -> Option<Place> {
        self.pending.iter().map(|pending| pending.place).max_by_key(|place| place.call)
    }
}
