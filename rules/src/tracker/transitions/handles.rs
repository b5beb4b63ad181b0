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
        exports::Subject,
        fact::{Ended, Exported, FactConsumer, What},
        pending::Operation,
        process_state::ProcessState,
        records::{HandleData, Requested, Serial, Tombstone},
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
    pub(super) context: Option<u64>,
}

/// A get begins: what it exports is known by now.
pub(super) fn get(tracker: &Tracker, who: ProcessId, kind: Kind, enter: &Enter) -> Operation {
    let Values { pointer, object, context, .. } = enter.values;
    let state = tracker.state(who);
    if kind == Kind::MemHandle {
        if enter.function.is_level_zero()
            && let Some((value, exported)) = state.and_then(|state| special(tracker, who, state, &enter.values))
        {
            return Operation::Get { kind, value: Some(value), exported, context, dangling: None };
        }
        let found = pointer.and_then(|pointer| state?.allocation_at(pointer));
        // A mapping may have taken the address of freed memory.
        let is_gone =
            |pointer: &u64| found.is_none() && state.is_some_and(|state| state.mapping_at(*pointer).is_none());
        let dangling = pointer.filter(is_gone).and_then(|pointer| state?.dangling(pointer)).map(Box::new);
        let exported = found.map(|(_, found)| found.serial);
        return Operation::Get { kind, value: pointer, exported, context, dangling };
    }
    let found = kind.shares().zip(object).and_then(|(kind, value)| state?.objects.get(&Handle { kind, value }));
    let context = context.or(found.and_then(|found| found.context));
    Operation::Get { kind, value: object, exported: found.map(|found| found.serial), context, dangling: None }
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
            Some((export.subject.value.filter(|_| is_own)?, export.subject.serial))
        }
    }
}

pub(super) fn put(tracker: &mut Tracker, at: Place, handle: Handle) -> Operation {
    let who = at.process;
    let Some(data) = tracker.state_mut(who).and_then(|state| state.handles.get_mut(&handle)) else {
        let is_inherited = tracker.state(who).is_some_and(|state| state.state(handle) == State::Inherited);
        if let Some(born) = born_in_ancestor(tracker, who, handle).filter(|_| is_inherited) {
            return Operation::PutInherited { handle, born };
        }
        super::end_wrongly(tracker, who, handle.kind, handle.value);
        return Operation::Nothing;
    };
    let before = data.state;
    if before == State::Alive && data.gets > 1 {
        data.gets -= 1;
        let serial = data.serial;
        return Operation::PutOne { handle, serial };
    }
    data.state = step(before, Event::Ending).next;
    let (serial, export, counted) = (data.serial, data.export, Counted::of(handle, data));
    if before == State::Alive && !data.ended_wrongly {
        if let Some(state) = tracker.state_mut(who) {
            count(state, counted, |handles| handles.saturating_sub(1));
        }
        if let Some(export) = export {
            tracker.exports.put(export, Some(at));
        }
    }
    Operation::Put { handle, serial }
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
        let (size, fingerprint) = (None, None);
        state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused: false });
    }
}

/// It has been ended in a wrong way, which is reported at that call: from here on nothing depends on it.
pub(super) fn end_wrongly(tracker: &mut Tracker, who: ProcessId, handle: Handle) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(&handle) else { return };
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
    /// Its bytes are known, and it is to be put.
    is_to_be_put: bool,
}

impl Counted {
    fn of(handle: Handle, data: &HandleData) -> Self {
        let HandleData { pointer, exported, export, .. } = *data;
        Self { kind: handle.kind, pointer, exported, is_to_be_put: export.is_some() && !data.is_descriptor() }
    }
}

/// Changes how much handle data there is of the memory, physical memory or event that some was got of.
fn count(state: &mut ProcessState, of: Counted, change: impl FnOnce(u64) -> u64) {
    let (Some(value), Some(serial)) = (of.pointer, of.exported) else { return };
    if of.kind == Kind::MemHandle {
        if !of.is_to_be_put {
            return;
        }
        let base = state.allocation_at(value).filter(|(_, known)| known.serial == serial).map(|(base, _)| base);
        if let Some(known) = base.and_then(|base| state.allocations.get_mut(base)) {
            known.handles = change(known.handles);
        }
        return;
    }
    let object = of.kind.shares().map(|kind| Handle { kind, value });
    let known = object.and_then(|object| state.objects.get_mut(&object));
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
    facts: &mut dyn FactConsumer,
) {
    let who = born.process;
    let From { value: pointer, exported: aimed, context } = from;
    let fingerprint = answer.fingerprint;
    let memory = memory(tracker, who, handle, (pointer, aimed));
    let is_descriptor = born.function.is_some_and(Function::may_export);
    let is_level_zero = born.function.is_some_and(Function::is_level_zero);
    // Level Zero's handles of physical memory are handles of memory.
    let physical = |value: &u64| {
        let of_memory = is_level_zero && handle.kind == Kind::MemHandle;
        let found = tracker.state(who).filter(|_| of_memory)?.physical_at(*value)?;
        (aimed == Some(found.1.serial)).then_some(found.0)
    };
    let of_kind = |(kind, value)| Handle { kind, value };
    let object = pointer.as_ref().and_then(physical).or(handle.kind.shares().zip(pointer).map(of_kind));
    let known = object.and_then(|object| tracker.state(who)?.objects.get(&object));
    let size = match known.filter(|known| aimed == Some(known.serial)) {
        Some(known) => known.size,
        None => memory.and_then(|(base, _, size)| size?.checked_sub(pointer? - base)),
    };
    let exported = aimed.or(memory.map(|(_, serial, _)| serial));
    let host = tracker.process(who).map_or(0, |process| process.host);
    let allocation = memory.and_then(|(base, ..)| tracker.state(who)?.allocations.get(base));
    let of_context = || tracker.state(who)?.contexts.get(&context?)?.device;
    let device = allocation.and_then(|known| known.requested.device).or_else(of_context);
    let subject = Subject { kind: handle.kind, value: pointer, serial: exported, size, device };
    let previous = allocation.filter(|known| known.handles == 0).and_then(|known| known.exports.last().copied());
    let export = fingerprint.map(|bytes| tracker.exports.export((host, bytes), subject, (born, took), previous));
    let (export, again) = (export.map(|(id, _)| id), export.and_then(|(_, again)| again));
    let serial = tracker.next_serial();
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    if let (Some((base, ..)), Some(export)) = (memory, export)
        && let Some(allocation) = state.allocations.get_mut(base)
    {
        allocation.handles += u64::from(!is_descriptor);
        let is_new = allocation.add_export(export);
        if is_new && allocation.exports.len() >= MANY_EXPORTS && allocation.exports.len().is_power_of_two() {
            allocation.exports.retain(|id| exports.get(*id).is_some());
        }
    }
    let known = object.and_then(|object| state.objects.get_mut(&object));
    if let Some(known) = known.filter(|known| exported == Some(known.serial)) {
        known.handles += 1;
        known.got = Some(born);
    }
    let is_met = memory.is_some_and(|(base, ..)| state.allocations.get(base).is_some_and(|known| known.born.is_none()));
    state.tombstones.forget(handle);
    let alive = State::Alive;
    let new = HandleData {
        serial,
        state: alive,
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
    if let Some(same) = state.handles.get_mut(&handle).filter(|_| is_level_zero && !is_descriptor)
        && (same.state, same.fingerprint, same.exported) == (alive, fingerprint, exported)
        && !same.ended_wrongly
    {
        same.gets += 1;
        if let Some(data) = tracker.state(who).and_then(|state| state.handles.get(&handle)) {
            tracker.emit(facts, born, What::Exported(Exported { handle, data, answer, again, replaced: None }));
        }
        return;
    }
    // Whatever was there has ended where we do not see.
    let old = state.handles.insert(handle, new).filter(|old| old.state == alive);
    let replaced = old.as_ref().map(|old| old.serial);
    if let Some(export) = old.and_then(|old| old.export) {
        exports.put(export, None);
    }
    if let (Some(pointer), Some(export), true) = (pointer, export, is_met) {
        exported_by_child(tracker, who, pointer, export);
    }
    if let Some(data) = tracker.state(who).and_then(|state| state.handles.get(&handle)) {
        tracker.emit(facts, born, What::Exported(Exported { handle, data, answer, again, replaced }));
    }
}

/// The allocation that handle data of memory is of: its start, which life it is, and its size. Memory that is first met here is
/// known from now on.
fn memory(
    tracker: &mut Tracker,
    who: ProcessId,
    handle: Handle,
    (pointer, aimed): (Option<u64>, Option<Serial>),
) -> Option<(u64, Serial, Option<u64>)> {
    // Physical memory and events are known by their own handles.
    if handle.kind != Kind::MemHandle {
        return None;
    }
    let pointer = pointer?;
    let known = |tracker: &Tracker| {
        let (base, found) = tracker.state(who)?.allocation_at(pointer)?;
        Some((base, found.serial, found.requested.size))
    };
    match (aimed, known(tracker)) {
        (None, None) => {
            allocated(tracker, who, pointer, Requested::default(), None);
            known(tracker)
        }
        (aimed, found) => found.filter(|(_, serial, _)| aimed.is_none_or(|aimed| aimed == *serial)),
    }
}

/// A put has returned.
pub(super) fn has_put(
    tracker: &mut Tracker,
    died: Place,
    (handle, serial): (Handle, Serial),
    success: bool,
    took: u64,
    facts: &mut dyn FactConsumer,
) {
    move_put(tracker, died, (handle, serial), success, took);
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
    let Some(data) = state.handles.get_mut(&handle).filter(|data| data.serial == serial) else { return };
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

fn move_put(tracker: &mut Tracker, died: Place, (handle, serial): (Handle, Serial), success: bool, took: u64) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    let Some(data) = state.handles.get_mut(&handle).filter(|data| data.serial == serial) else { return };
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
        state.handles.remove(&handle);
        state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused: false });
    }
}
