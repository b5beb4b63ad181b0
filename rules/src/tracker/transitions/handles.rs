//! Handle data: born at the exit of a get, dead at the enter of its put.

use smallvec::smallvec;
use urscope_schema::api::{Effect, Promise};
use urscope_schema::handle::{Handle, Kind, descriptor_in};
use urscope_schema::operation::{Answer, Export, Requested};

use super::memory::{allocated, exported_by_child};
use crate::lifecycle::{Event, State, step};
use crate::place::{Place, ProcessId};
use crate::tracker::changes::{Change, Changes};
use crate::tracker::records::{ExportId, HandleData, Life, OwnDescriptor, Serial, Tombstone};
use crate::tracker::{
    exports::Subject, observations::DanglingUse, pending::PendingChange, process_state::ProcessState, state::Tracker,
};

/// With so many exports of one allocation, the forgotten ones are dropped from time to time.
const MANY_EXPORTS: usize = 1024;

/// The source of a get.
#[derive(Clone, Copy)]
pub(super) struct From {
    /// The address or object.
    pub(super) value: Option<u64>,
    /// Which life of it.
    pub(super) exported: Option<Serial>,
    pub(super) context: Option<u64>,
}

/// A get begins: determines what it exports.
pub(super) fn get(tracker: &Tracker, at: Place, export: &Export) -> PendingChange {
    let Export { kind: shared, pointer, object, context, fingerprint } = *export;
    let Some(kind) = shared.handle_data() else { return PendingChange::Nothing };
    let state = tracker.state(at.process);
    if shared != Kind::Usm {
        let found = object.and_then(|value| state?.objects.get(&Handle { kind: shared, value }));
        let context = context.or(found.and_then(|found| found.context));
        let exported = found.map(|found| found.serial);
        return PendingChange::Get { kind, value: object, exported, context, dangling: None };
    }
    let physical = |value| {
        let (memory, object) = state?.physical_at(value)?;
        Some((memory.value, Some(object.serial)))
    };
    let allocation = pointer.and_then(|pointer| state?.allocation_at(pointer));
    let special = match (pointer, object) {
        (Some(pointer), _) if allocation.is_none() && at.promises(Promise::PhysicalMemoryIsMemory) => physical(pointer),
        (Some(_), _) => None,
        (None, Some(object)) => physical(object),
        (None, None) => of_descriptor(tracker, at.process, fingerprint),
    };
    if let Some((value, exported)) = special {
        return PendingChange::Get { kind, value: Some(value), exported, context, dangling: None };
    }
    let exported = allocation.map(|(_, found)| found.serial);
    let dangling = if exported.is_none() { dangling(state, pointer) } else { None };
    PendingChange::Get { kind, value: pointer, exported, context, dangling }
}

/// The memory of a descriptor that this process has exported before.
fn of_descriptor(tracker: &Tracker, who: ProcessId, fingerprint: Option<u64>) -> Option<(u64, Option<Serial>)> {
    let export = tracker.exports.get(tracker.export_of(who, fingerprint)?)?;
    let is_own = export.producer == who && export.subject.kind == Kind::MemHandle;
    Some((export.subject.value.filter(|_| is_own)?, export.subject.serial))
}

/// The ended object at an address that lies in no allocation. A mapping, or physical memory, may have taken the address
/// of freed memory.
fn dangling(state: Option<&ProcessState>, pointer: Option<u64>) -> Option<Box<DanglingUse>> {
    let (state, pointer) = state.zip(pointer)?;
    if state.mapping_at(pointer).is_some() || state.mapped.at(pointer).is_some() {
        return None;
    }
    state.dangling(pointer).map(Box::new)
}

/// A put begins.
pub(super) fn put(tracker: &mut Tracker, at: Place, handle: Handle) -> PendingChange {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(at.process.0 as usize) else { return PendingChange::Nothing };
    let Some(data) = state.handles.get_mut(&handle) else { return put_of_other(tracker, at.process, handle) };
    let serial = data.serial;
    let before = data.state;
    if before == State::Alive && data.gets > 1 {
        data.gets -= 1;
        return PendingChange::PutOne(Life { handle, serial });
    }
    data.state = step(before, Event::Ending).next;
    if before == State::Alive && !data.ended_wrongly {
        let export = data.export;
        let counted = Counted::new(handle, data);
        count(state, counted, |handles| handles.saturating_sub(1));
        if let Some(export) = export {
            exports.put(export, Some(at));
        }
    }
    PendingChange::Put(Life { handle, serial })
}

/// A put of handle data that this process did not get.
fn put_of_other(tracker: &mut Tracker, who: ProcessId, handle: Handle) -> PendingChange {
    let is_inherited = tracker.state(who).is_some_and(|state| state.state(handle) == State::Inherited);
    if let Some(born) = born_in_ancestor(tracker, who, handle).filter(|_| is_inherited) {
        return PendingChange::PutInherited { handle, born };
    }
    super::end_wrongly(tracker, who, handle.kind, handle.value);
    PendingChange::Nothing
}

/// The get of handle data that a forked process has from the process it is a copy of.
fn born_in_ancestor(tracker: &Tracker, who: ProcessId, handle: Handle) -> Option<Place> {
    let parent = tracker.state(tracker.process(who)?.forked_from?)?;
    let data = parent.handles.get(&handle).map(|data| data.born);
    data.or_else(|| parent.tombstones.get(handle).map(|tombstone| tombstone.born))
}

/// A forked child has put its copy of what its parent got.
pub(super) fn inherited_put(tracker: &mut Tracker, died: Place, handle: Handle, born: Place) {
    if let Some(state) = tracker.state_mut(died.process) {
        let size = None;
        let fingerprint = None;
        state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused: false });
    }
}

/// Handle data has been ended in a wrong way, which is reported at that call: from here on nothing depends on it.
pub(super) fn end_wrongly(tracker: &mut Tracker, who: ProcessId, handle: Handle) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(&handle) else { return };
    if std::mem::replace(&mut data.ended_wrongly, true) {
        return;
    }
    let export = data.export;
    let counted = Counted::new(handle, data);
    count(state, counted, |handles| handles.saturating_sub(1));
    if let Some(export) = export {
        exports.put(export, None);
    }
}

/// The parts of handle data that the handle count of its object depends on.
#[derive(Clone, Copy)]
struct Counted {
    kind: Kind,
    pointer: Option<u64>,
    exported: Option<Serial>,
    /// Its bytes are known, and it is to be put.
    is_to_be_put: bool,
}

impl Counted {
    fn new(handle: Handle, data: &HandleData) -> Self {
        let HandleData { pointer, exported, export, .. } = *data;
        Self { kind: handle.kind, pointer, exported, is_to_be_put: export.is_some() && !data.is_descriptor() }
    }
}

/// Changes the number of handles of the memory, physical memory or event that was exported.
fn count(state: &mut ProcessState, of: Counted, change: impl FnOnce(u64) -> u64) {
    let (Some(serial), Some(value)) = (of.exported, of.pointer) else { return };
    if of.kind == Kind::MemHandle {
        let known = state.allocation_at_mut(value).filter(|known| known.serial == serial && of.is_to_be_put);
        if let Some(known) = known {
            known.handles = change(known.handles);
        }
        return;
    }
    let object = of.kind.shares().and_then(|kind| state.objects.get_mut(&Handle { kind, value }));
    if let Some(known) = object.filter(|known| known.serial == serial) {
        known.handles = change(known.handles);
    }
}

/// A get has returned.
pub(super) fn got(tracker: &mut Tracker, born: Place, from: From, handle: Handle, answer: &Answer) -> Change {
    let who = born.process;
    let From { value: pointer, exported: aimed, context, .. } = from;
    let fingerprint = answer.fingerprint;
    let is_descriptor = matches!(born.effect(), Some(Effect::MayExport(_)));
    let memory = pointer.filter(|_| handle.kind == Kind::MemHandle);
    // Memory whose allocation was not recorded is known from now on.
    let is_known = |pointer| tracker.state(who).is_some_and(|state| state.allocation_at(pointer).is_some());
    if let Some(pointer) = memory.filter(|pointer| aimed.is_none() && !is_known(*pointer)) {
        allocated(tracker, who, pointer, Requested::default(), None);
    }
    let serial = tracker.next_serial();
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else {
        return Change::Exported { of: pointer, handle, replaced: None };
    };
    let is_aimed_at = |life: Serial| aimed.is_none_or(|aimed| aimed == life);
    let allocation = memory.and_then(|pointer| state.allocation_at(pointer));
    let allocation_unseen = allocation.is_some_and(|(_, memory)| memory.born.is_none());
    let allocation = allocation.filter(|(_, known)| is_aimed_at(known.serial));
    let object = object(state, handle.kind, pointer, aimed);
    let known = object.and_then(|object| state.objects.get(&object)).filter(|known| aimed == Some(known.serial));
    let base = allocation.map(|(base, _)| base);
    // Where an open will begin.
    let shared = base.filter(|_| born.promises(Promise::HandlesNameAllocations)).or(pointer);
    let size = match known {
        Some(known) => known.size,
        None => allocation.and_then(|(base, memory)| memory.requested.size?.checked_sub(shared? - base)),
    };
    let exported = aimed.or(allocation.map(|(_, memory)| memory.serial));
    let of_context = || state.contexts.get(&context?)?.device;
    let device = allocation.and_then(|(_, memory)| memory.requested.device).or_else(of_context);
    let data = answer.data_size.zip(answer.checksum);
    let subject = Subject { kind: handle.kind, value: shared, serial: exported, size, device, data };
    let host = state.process.host;
    let export = fingerprint.map(|bytes| exports.export(host, bytes, subject, born));
    if let Some(export) = export.filter(|_| !is_descriptor && born.promises(Promise::HandlesAreDescriptors)) {
        exports.note_descriptor(who, handle.value, export);
    }
    if let (Some(export), Some(base)) = (export, base)
        && let Some(allocation) = state.allocations.get_mut(base)
    {
        allocation.handles += u64::from(!is_descriptor);
        let is_new = allocation.add_export(export);
        if is_new && allocation.exports.len() >= MANY_EXPORTS && allocation.exports.len().is_power_of_two() {
            allocation.exports.retain(|id| exports.get(*id).is_some());
        }
    }
    if let Some(number) = descriptor_in(handle.value).filter(|_| born.promises(Promise::DescriptorsKeepMemory)) {
        state.descriptors.remove(&number);
        let new = |memory| OwnDescriptor { got: born, memory, serial: exported, size, released: None, is_kept: false };
        state.descriptors.extend(object.map(|memory| (number, new(memory))));
    }
    let known = object.and_then(|object| state.objects.get_mut(&object));
    if let Some(known) = known.filter(|known| exported == Some(known.serial)) {
        known.handles += 1;
        known.got = Some(born);
        known.export = export.or(known.export);
    }
    state.tombstones.forget(handle);
    if !is_descriptor
        && born.promises(Promise::GetsAreCounted)
        && let Some(same) = state.handles.get_mut(&handle)
        && (same.state, same.fingerprint, same.exported) == (State::Alive, fingerprint, exported)
        && !same.ended_wrongly
    {
        same.gets += 1;
        return Change::Exported { of: pointer, handle, replaced: None };
    }
    let new = HandleData {
        serial,
        state: State::Alive,
        born,
        pointer,
        size,
        fingerprint,
        export,
        exported,
        context,
        context_released: None,
        ended_wrongly: false,
        gets: 1,
    };
    // Handle data that was there has ended, and the end was not recorded.
    let old = state.handles.get(&handle).filter(|old| old.state == State::Alive);
    let replaced = old.map(|old| old.serial);
    if let Some(export) = old.and_then(|old| old.export) {
        exports.put(export, None);
    }
    state.handles.insert(handle, new);
    if let (Some(pointer), Some(export), true) = (memory, export, allocation_unseen) {
        exported_by_child(tracker, who, pointer, export);
    }
    Change::Exported { of: pointer, handle, replaced }
}

/// The physical memory or event of handle data. Handle data of memory may be that of physical memory.
fn object(state: &ProcessState, kind: Kind, value: Option<u64>, aimed: Option<Serial>) -> Option<Handle> {
    // Memory is known by its address, all else by its handle.
    if kind == Kind::MemHandle {
        let (physical, object) = state.physical_at(value?)?;
        return (aimed == Some(object.serial)).then_some(physical);
    }
    kind.shares().zip(value).map(|(kind, value)| Handle { kind, value })
}

/// A put has returned.
pub(super) fn has_put(tracker: &mut Tracker, died: Place, data: Life, success: bool) -> Changes {
    let export = end(tracker, died, data, success);
    smallvec![if success { Change::Put(data, export) } else { Change::EndRefused(data.handle) }]
}

/// A put has returned, of handle data that more than one get has returned.
pub(super) fn has_put_one(tracker: &mut Tracker, died: Place, data: Life, success: bool) {
    let Life { handle, serial } = data;
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(&handle).filter(|data| data.serial == serial) else { return };
    if !success {
        data.gets += 1;
        return;
    }
    let export = data.export;
    let counted = Counted::new(handle, data);
    count(state, counted, |handles| handles.saturating_sub(1));
    if let Some(export) = export {
        exports.put(export, None);
    }
}

/// Changes the state of the handle data whose put has returned. Returns the export that it belonged to.
fn end(tracker: &mut Tracker, died: Place, data: Life, success: bool) -> Option<ExportId> {
    let Life { handle, serial } = data;
    let Tracker { states, exports, .. } = tracker;
    let state = states.get_mut(died.process.0 as usize)?;
    let data = state.handles.get_mut(&handle).filter(|data| data.serial == serial)?;
    let next = step(data.state, if success { Event::Ended } else { Event::Refused }).next;
    let before = std::mem::replace(&mut data.state, next);
    let HandleData { born, size, fingerprint, export, ended_wrongly, .. } = *data;
    let counted = Counted::new(handle, data);
    match (before, next) {
        _ if ended_wrongly => {}
        (State::Dying, State::Alive) => {
            count(state, counted, |handles| handles + 1);
            if let Some(export) = export {
                exports.put_refused(export);
            }
        }
        (State::Alive, State::Dead) => {
            count(state, counted, |handles| handles.saturating_sub(1));
            if let Some(export) = export {
                exports.put(export, Some(died));
            }
        }
        _ => {}
    }
    if next == State::Dead {
        state.handles.remove(&handle);
        state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused: false });
    }
    export
}
