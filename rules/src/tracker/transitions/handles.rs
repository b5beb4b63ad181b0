//! Handle data: got at the exit of a get, gone at the enter of its put.

use urscope_schema::{
    api::Function,
    call::{Enter, Values},
    handle::{Handle, Kind},
};

use super::memory::{allocated, exported_by_child};
use crate::{
    finding::Place,
    lifecycle::{Event, State, step},
    tracker::{
        ProcessId, Tracker,
        exports::{ExportId, Exports, Subject},
        fact::{DanglingUse, Ended, Exported, FactConsumer, What},
        kept::KeptPlace,
        pending::Operation,
        process_state::ProcessState,
        records::{HandleData, Requested, Serial, Tombstone},
        table::Slot,
    },
};

/// From so many exports of one allocation on, the forgotten ones are dropped now and then.
const MANY_EXPORTS: usize = 1024;

/// What handle data is got of.
#[derive(Clone, Copy)]
pub(super) struct From {
    /// The address or object.
    pub(super) value: Option<u64>,
    /// Which life of that.
    pub(super) exported: Option<Serial>,
    /// Where that lies among the allocations of the process, if it is memory.
    pub(super) slot: Option<Slot>,
    pub(super) context: Option<u64>,
}

/// A get begins: what it exports is known by now.
#[inline]
pub(super) fn get(tracker: &Tracker, who: ProcessId, kind: Kind, enter: &Enter) -> Operation {
    let Values { pointer, object, context, .. } = enter.values;
    let state = tracker.state(who);
    if kind == Kind::MemHandle {
        if enter.function.is_level_zero()
            && let Some((value, exported)) = state.and_then(|state| special(tracker, who, state, &enter.values))
        {
            let slot = state.and_then(|state| state.find_allocation(value));
            return Operation::Get { kind, value: Some(value), exported, slot, context, dangling: None };
        }
        let slot = pointer.and_then(|pointer| state?.find_allocation(pointer));
        let found = slot.and_then(|slot| state?.allocations.at(slot));
        let exported = found.map(|(_, found)| found.serial);
        let dangling = if found.is_none() { dangling(state, pointer) } else { None };
        return Operation::Get { kind, value: pointer, exported, slot, context, dangling };
    }
    let found = kind.shares().zip(object).and_then(|(kind, value)| state?.seldom.objects.get(Handle { kind, value }));
    let context = context.or(found.and_then(|found| found.context));
    let exported = found.map(|found| found.serial);
    Operation::Get { kind, value: object, exported, slot: None, context, dangling: None }
}

/// What a get of Level Zero is of that names no allocation: physical memory, by its handle or where it is mapped; or the memory behind a
/// descriptor, which was exported before. Nothing if it is of memory at an address.
fn special(tracker: &Tracker, who: ProcessId, state: &ProcessState, values: &Values) -> Option<(u64, Option<Serial>)> {
    let physical = |value| state.physical_at(value).map(|(memory, object)| (memory.value, Some(object.serial)));
    match (values.pointer, values.object) {
        (Some(pointer), _) => physical(pointer).filter(|_| state.allocation_at(pointer).is_none()),
        (None, Some(object)) => physical(object),
        (None, None) => {
            let export = tracker.exports.get(tracker.export_of(who, values.fingerprint)?)?;
            let is_own = export.producer() == who && export.subject.kind == Kind::MemHandle;
            Some((export.subject.value.get().filter(|_| is_own)?, export.subject.serial))
        }
    }
}

/// What was at an address that lies in no allocation. A mapping may have taken the address of freed memory.
#[cold]
fn dangling(state: Option<&ProcessState>, pointer: Option<u64>) -> Option<Box<DanglingUse>> {
    let (state, pointer) = state.zip(pointer)?;
    if state.mapping_at(pointer).is_some() {
        return None;
    }
    state.dangling(pointer).map(Box::new)
}

/// A put begins: which life it is about, where that lies, and whether it ends; nothing if this process has not got it.
#[inline]
pub(super) fn put(tracker: &mut Tracker, at: Place, handle: Handle) -> Option<(Serial, Slot, bool)> {
    let Tracker { states, exports, .. } = tracker;
    let state = states.get_mut(at.process.0 as usize)?;
    let slot = state.handles.find(handle)?;
    put_at(state, exports, at, handle, slot)
}

/// The same, of handle data in that slot.
#[inline]
pub(in crate::tracker) fn put_at(
    state: &mut ProcessState,
    exports: &mut Exports,
    at: Place,
    handle: Handle,
    slot: Slot,
) -> Option<(Serial, Slot, bool)> {
    let data = state.handles.at_mut(slot)?;
    let before = data.state;
    if before == State::Alive && data.gets > 1 {
        data.gets -= 1;
        return Some((data.serial, slot, false));
    }
    data.state = step(before, Event::Ending).next;
    let (serial, export) = (data.serial, data.export);
    if before == State::Alive && !data.ended_wrongly {
        let counted = Counted::of(handle, data);
        count(state, counted, |handles| handles.saturating_sub(1));
        if let Some(export) = export {
            exports.put(export, Some(at));
        }
    }
    Some((serial, slot, true))
}

/// A put of what this process has not got.
#[cold]
pub(super) fn put_of_other(tracker: &mut Tracker, who: ProcessId, handle: Handle) -> Operation {
    let is_inherited = tracker.state(who).is_some_and(|state| state.state(handle) == State::Inherited);
    if let Some(born) = born_in_ancestor(tracker, who, handle).filter(|_| is_inherited) {
        return Operation::PutInherited { handle, born };
    }
    super::end_wrongly(tracker, who, handle.kind, handle.value);
    Operation::Nothing
}

/// The get of handle data that a forked process has from the process it is a copy of.
fn born_in_ancestor(tracker: &Tracker, who: ProcessId, handle: Handle) -> Option<Place> {
    let parent = tracker.state(tracker.process(who)?.forked_from?)?;
    let data = parent.handles.get(handle).map(|data| data.born);
    data.or_else(|| parent.tombstones.get(handle).map(|tombstone| tombstone.born)).map(KeptPlace::place)
}

/// A forked child has put its copy of what its parent got.
pub(super) fn inherited_put(tracker: &mut Tracker, died: Place, handle: Handle, born: Place) {
    if let Some(state) = tracker.state_mut(died.process) {
        let (size, fingerprint) = (None, None);
        state.tombstones.add(
            handle,
            Tombstone { born: KeptPlace::of(born), died: KeptPlace::of(died), size, fingerprint, excused: false },
        );
    }
}

/// It has been ended in a wrong way, which is reported at that call: from here on nothing depends on it.
pub(super) fn end_wrongly(tracker: &mut Tracker, who: ProcessId, handle: Handle) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(handle) else { return };
    if std::mem::replace(&mut data.ended_wrongly, true) {
        return;
    }
    let (export, counted) = (data.export, Counted::of(handle, data));
    count(state, counted, |handles| handles.saturating_sub(1));
    if let Some(export) = export {
        exports.put(export, None);
    }
}

/// What handle data was got of, for counting it there.
#[derive(Clone, Copy)]
struct Counted {
    kind: Kind,
    pointer: Option<u64>,
    exported: Option<Serial>,
    slot: Option<Slot>,
    /// Its bytes are known, and it is to be put.
    is_to_be_put: bool,
}

impl Counted {
    #[inline]
    fn of(handle: Handle, data: &HandleData) -> Self {
        let HandleData { pointer, exported, slot, export, .. } = *data;
        let is_to_be_put = export.is_some() && !data.is_descriptor();
        Self { kind: handle.kind, pointer, exported, slot, is_to_be_put }
    }
}

/// Changes how much handle data there is of the memory, physical memory or event that some was got of.
#[inline]
fn count(state: &mut ProcessState, of: Counted, change: impl FnOnce(u64) -> u64) {
    let Some(serial) = of.exported else { return };
    if of.kind == Kind::MemHandle {
        let known = of.slot.filter(|_| of.is_to_be_put).and_then(|slot| state.allocations.at_mut(slot));
        if let Some(known) = known.filter(|known| known.serial == serial && known.freed.is_none()) {
            known.handles = change(known.handles);
        }
        return;
    }
    let object = of.kind.shares().zip(of.pointer).map(|(kind, value)| Handle { kind, value });
    let known = object.and_then(|object| state.seldom.object_mut(object));
    if let Some(known) = known.filter(|known| known.serial == serial) {
        known.handles = change(known.handles);
    }
}

/// A get has returned.
pub(super) fn got(
    tracker: &mut Tracker,
    born: Place,
    from: From,
    handle: Handle,
    (answer, took): (&Values, u64),
    facts: &mut (impl FactConsumer + ?Sized),
) {
    let who = born.process;
    let From { value: pointer, exported: aimed, context, .. } = from;
    let fingerprint = answer.fingerprint;
    let slot = memory(tracker, who, handle, from);
    let is_descriptor = born.function.is_some_and(Function::may_export);
    let is_level_zero = born.function.is_some_and(Function::is_level_zero);
    let serial = tracker.next_serial();
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let allocation = slot.and_then(|slot| state.allocations.at(slot));
    let object = object(state, handle.kind, (pointer, aimed), is_level_zero);
    let known = object.and_then(|object| state.seldom.objects.at(object)).map(|(_, known)| known);
    let size = match known.filter(|known| aimed == Some(known.serial)) {
        Some(known) => known.size,
        None => allocation.and_then(|(base, memory)| memory.requested.size?.checked_sub(pointer? - base)),
    };
    let exported = aimed.or(allocation.map(|(_, memory)| memory.serial));
    let of_context = || state.seldom.contexts.get(context?)?.device;
    let device = allocation.and_then(|(_, memory)| memory.requested.device.get()).or_else(of_context);
    let subject = Subject {
        kind: handle.kind,
        value: pointer.into(),
        serial: exported,
        size: size.into(),
        device: device.into(),
    };
    let previous =
        allocation.filter(|(_, known)| known.handles == 0).and_then(|(_, known)| known.exports.last().copied());
    let host = state.process.host;
    let export = fingerprint.map(|bytes| exports.export((host, bytes), subject, (born, took), previous));
    let (export, again) = (export.map(|(id, _)| id), export.and_then(|(_, again)| again));
    let mut is_met = false;
    if let Some(allocation) = slot.and_then(|slot| state.allocations.at_mut(slot)) {
        is_met = allocation.born.is_none();
        if let Some(export) = export {
            allocation.handles += u64::from(!is_descriptor);
            let is_new = allocation.add_export(export);
            if is_new && allocation.exports.len() >= MANY_EXPORTS && allocation.exports.len().is_power_of_two() {
                allocation.exports.retain(|id| exports.get(*id).is_some());
            }
        }
    }
    let known = object.and_then(|object| state.seldom.known()?.objects.at_mut(object));
    if let Some(known) = known.filter(|known| exported == Some(known.serial)) {
        known.handles += 1;
        known.got = Some(born);
    }
    state.tombstones.forget(handle);
    let new =
        new_data((serial, KeptPlace::of(born)), (pointer, size, context), (fingerprint, export), (exported, slot));
    let place = state.handles.find(handle);
    if is_level_zero
        && !is_descriptor
        && let Some(place) = place
        && let Some(same) = state.handles.at_mut(place)
        && (same.state, same.fingerprint, same.exported) == (State::Alive, fingerprint, exported)
        && !same.ended_wrongly
    {
        same.gets += 1;
        if let Some((_, data)) = tracker.state(who).and_then(|state| state.handles.at(place)) {
            tracker.emit(facts, born, What::Exported(Exported { handle, data, answer, again, replaced: None }));
        }
        return;
    }
    let mut replaced = None;
    let place = match place {
        Some(place) => {
            if let Some(old) = state.handles.at_mut(place) {
                // Whatever was there has ended where we do not see.
                if old.state == State::Alive {
                    replaced = Some(old.serial);
                    if let Some(export) = old.export {
                        exports.put(export, None);
                    }
                }
                *old = new;
            }
            place
        }
        None => state.handles.add(handle, new),
    };
    if let (Some(pointer), Some(export), true) = (pointer, export, is_met) {
        exported_by_child(tracker, who, pointer, export);
    }
    if let Some((_, data)) = tracker.state(who).and_then(|state| state.handles.at(place)) {
        tracker.emit(facts, born, What::Exported(Exported { handle, data, answer, again, replaced }));
    }
}

/// Handle data that a get has returned.
#[inline]
pub(in crate::tracker) const fn new_data(
    (serial, born): (Serial, KeptPlace),
    (pointer, size, context): (Option<u64>, Option<u64>, Option<u64>),
    (fingerprint, export): (Option<u64>, Option<ExportId>),
    (exported, slot): (Option<Serial>, Option<Slot>),
) -> HandleData {
    HandleData {
        serial,
        state: State::Alive,
        born,
        pointer,
        size,
        fingerprint,
        export,
        exported,
        slot,
        context,
        context_released: None,
        ended_wrongly: false,
        gets: 1,
    }
}

/// Where the physical memory or event lies that handle data is of. Level Zero's handles of physical memory are handles of memory.
#[inline]
fn object(
    state: &ProcessState,
    kind: Kind,
    (value, aimed): (Option<u64>, Option<Serial>),
    is_level_zero: bool,
) -> Option<Slot> {
    let physical = |value: u64| {
        let (physical, object) = state.physical_at(value)?;
        (aimed == Some(object.serial)).then_some(physical)
    };
    // Memory is known by its address, all else by its handle.
    let object = match kind {
        Kind::MemHandle => value.filter(|_| is_level_zero).and_then(physical),
        kind => kind.shares().zip(value).map(|(kind, value)| Handle { kind, value }),
    };
    state.seldom.objects.find(object?)
}

/// Where the allocation lies that handle data of memory is of. Memory that is first met here is known from now on.
#[inline]
fn memory(tracker: &mut Tracker, who: ProcessId, handle: Handle, from: From) -> Option<Slot> {
    // Physical memory and events are known by their own handles.
    if handle.kind != Kind::MemHandle {
        return None;
    }
    let pointer = from.value?;
    if let Some(aimed) = from.exported {
        let slot = from.slot?;
        let (_, memory) = tracker.state(who)?.allocations.at(slot)?;
        return (memory.serial == aimed && memory.freed.is_none()).then_some(slot);
    }
    let known = |tracker: &Tracker| tracker.state(who)?.find_allocation(pointer);
    known(tracker).or_else(|| {
        allocated(tracker, who, pointer, Requested::default(), None);
        known(tracker)
    })
}

/// A put has returned.
pub(in crate::tracker) fn has_put(
    tracker: &mut Tracker,
    died: Place,
    (handle, serial, slot): (Handle, Serial, Slot),
    success: bool,
    took: u64,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    move_put(tracker, died, (handle, serial, slot), success, took);
    if success {
        tracker.emit(facts, died, What::Put(Ended { handle, serial }));
    } else {
        super::refused(tracker, died, handle, facts);
    }
}

/// A put of handle data that another get has returned, too, has returned.
pub(super) fn has_put_one(tracker: &mut Tracker, (handle, serial): (Handle, Serial), died: Place, success: bool) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(handle).filter(|data| data.serial == serial) else { return };
    if !success {
        data.gets += 1;
        return;
    }
    let (export, counted) = (data.export, Counted::of(handle, data));
    count(state, counted, |handles| handles.saturating_sub(1));
    if let Some(export) = export {
        exports.put(export, None);
    }
}

#[inline]
fn move_put(
    tracker: &mut Tracker,
    died: Place,
    (handle, serial, slot): (Handle, Serial, Slot),
    success: bool,
    took: u64,
) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    let Some(data) = state.handles.at_mut(slot).filter(|data| data.serial == serial) else { return };
    let next = step(data.state, if success { Event::Ended } else { Event::Refused }).next;
    let before = std::mem::replace(&mut data.state, next);
    let HandleData { born, size, fingerprint, export, ended_wrongly, .. } = *data;
    let counted = Counted::of(handle, data);
    if let Some(export) = export {
        exports.spend(export, took);
    }
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
        state.handles.clear(slot);
        state.tombstones.add(handle, Tombstone { born, died: KeptPlace::of(died), size, fingerprint, excused: false });
    }
}
