//! The transitions of the tracker: how each call changes the live objects.
//!
//! An object dies at the enter of the call that ends it, and is born at the successful exit of the call
//! that makes it. Every exit finds the object of its enter by serial number, so that a late exit never
//! changes a new life at the same address.

mod commands;
mod contexts;
mod handles;
mod mappings;
mod memory;
mod objects;
mod opens;
mod pools;
mod virtual_memory;

use smallvec::smallvec;
use urscope_schema::{
    api::{Effect, Function},
    call::{Enter, Exit, Nanos, Values},
    handle::{Handle, Kind},
};

use super::{
    changes::{Change, Changes},
    observations::Support,
    pending::{Operation, PendingCall},
    process::End,
    process_state::{DataSize, Inherited, ProcessState},
    records::{Requested, UsmType},
    state::Tracker,
    tombstones::Tombstones,
};
use crate::place::{Place, ProcessId};

/// A call begins.
pub(super) fn enter(tracker: &mut Tracker, who: ProcessId, enter: &Enter) {
    let place = Place::of(who, enter);
    let operation = begun(tracker, who, place, enter);
    if let Some(state) = tracker.state_mut(who) {
        state.pending.insert(enter.call, PendingCall { place, operation });
    }
}

/// The operation of a call that begins.
fn begun(tracker: &mut Tracker, who: ProcessId, place: Place, enter: &Enter) -> Operation {
    let values = &enter.values;
    match (enter.function.effect(), values.pointer) {
        (Effect::Makes(kind), _) if kind.shares().is_some() => handles::get(tracker, who, kind, enter),
        (Effect::Ends(kind), _) if kind.shares().is_some() => handles::put(tracker, place, kind, values.data),
        (Effect::Makes(kind), _) if let Some(data) = enter.opens() => opens::open(tracker, who, (kind, data), enter),
        (Effect::Makes(kind), _) if kind.is_object() => objects::create(kind, enter),
        (Effect::Retains(kind), _) if kind.is_object() => objects::retain(tracker, who, kind, values.object),
        (Effect::Releases(kind), _) if kind.is_object() => objects::release(tracker, who, kind, values.object),
        (Effect::Makes(Kind::Usm), _) => Operation::Allocate(requested(enter)),
        (Effect::Makes(Kind::Pool), _) => Operation::CreatePool,
        (Effect::Retains(Kind::Pool), _) => pools::retain(tracker, who, values.object),
        (Effect::Releases(Kind::Pool), _) => pools::release(tracker, place, values.object),
        (Effect::Makes(Kind::Context), _) => Operation::CreateContext(contexts::only_device(values)),
        (Effect::Asks(Kind::Device), _) => ask(values),
        (Effect::Ends(Kind::Mapping), Some(pointer)) => mappings::close(tracker, place, pointer, values.context),
        (Effect::Ends(Kind::Usm), Some(pointer)) if tracker.imported(who, pointer) => {
            mappings::close(tracker, place, pointer, values.context)
        }
        (Effect::Ends(Kind::Usm), Some(pointer)) => {
            let how = memory::freeing(tracker, who, enter);
            memory::free(tracker, place, pointer, how)
        }
        (Effect::Uses(Kind::Usm), _) => commands::enqueue(tracker, place, enter),
        (Effect::Uses(Kind::Event), _) => wait(enter),
        (Effect::Uses(Kind::PhysicalMem), _) => virtual_memory::begin(tracker, place, enter),
        (Effect::Retains(Kind::Context), _) => contexts::retain(tracker, who, values.context),
        (Effect::Releases(Kind::Context), _) => contexts::release(tracker, place, values.context),
        _ => Operation::Nothing,
    }
}

/// The requested properties of an allocation.
fn requested(enter: &Enter) -> Requested {
    let Values { size, device, context, object: pool, .. } = enter.values;
    Requested { usm: UsmType::of(enter.function), size, device, context, pool }
}

/// A device is asked whether it can share something.
fn ask(values: &Values) -> Operation {
    let kind = [Kind::Usm, Kind::PhysicalMem, Kind::Event].into_iter().find(|kind| kind.support() == values.property);
    match (kind, values.device) {
        (Some(kind), Some(device)) => Operation::Ask(Support { device, kind, value: None }),
        _ => Operation::Nothing,
    }
}

/// A wait for one event. In a wait for several, it is not known which one is missing.
fn wait(enter: &Enter) -> Operation {
    let waits = enter.function == Function::urEventWait && enter.values.count.is_none_or(|count| count == 1);
    let event = enter.values.object.filter(|event| waits && *event != 0);
    event.map_or(Operation::Nothing, |value| Operation::Wait(Handle { kind: Kind::Event, value }))
}

/// A call passes an object as one of another kind. Whatever the call does, it is reported once.
fn end_wrongly(tracker: &mut Tracker, who: ProcessId, expected: Kind, value: u64) {
    let Some(state) = tracker.state_mut(who) else { return };
    let Some(is) = state.of_another_kind(expected, value).map(|mismatch| mismatch.is) else { return };
    if is.kind.shares().is_some() {
        handles::end_wrongly(tracker, who, is);
    } else if let Some(object) = state.objects.get_mut(&is) {
        object.ended_wrongly = true;
    } else if let Some(mapping) = state.mappings.get_mut(value) {
        mapping.ended_wrongly = true;
    }
}

/// A call returns. The data of its operation is moved out of `pending`.
pub(super) fn exit(tracker: &mut Tracker, pending: &mut PendingCall, exit: &Exit) -> Changes {
    let place = pending.place;
    let (success, values) = (exit.result.is_success(), &exit.values);
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    let who = place.process;
    match &mut pending.operation {
        Operation::Get { kind, value, exported, context, dangling } => {
            let mut changes = Changes::new();
            if let (Some(size), Some(state)) = (given(values.data_size), tracker.state_mut(who))
                && values.data != Some(0)
            {
                state.note_data_size(DataSize { kind: *kind, size, got: place });
            }
            if let Some(made) = given(values.data) {
                let from = handles::From { value: *value, exported: *exported, context: *context };
                changes.push(handles::got(tracker, place, from, Handle { kind: *kind, value: made }, values));
            }
            changes.extend(dangling.take().map(Change::Dangling));
            return changes;
        }
        Operation::Put { handle, serial } => return handles::has_put(tracker, place, (*handle, *serial), success),
        Operation::PutOne { handle, serial } => handles::has_put_one(tracker, (*handle, *serial), place, success),
        Operation::PutInherited { handle, born } if success => handles::inherited_put(tracker, place, *handle, *born),
        Operation::FreeDangling(dangling) => return smallvec![Change::Dangling(dangling.clone())],
        Operation::Create { kind, origin, context, size } => {
            if let Some(value) = given(values.object) {
                let handle = Handle { kind: *kind, value };
                objects::made(tracker, place, handle, *origin, (*context, *size));
                return smallvec![Change::Allocated(handle)];
            }
        }
        Operation::Retain { object, serial } => objects::retained(tracker, who, *object, *serial, success),
        Operation::Release { object, serial, mapped } => {
            return objects::released(tracker, place, (*object, *serial), mapped.take(), success).into_iter().collect();
        }
        Operation::Map(start, range) if success => virtual_memory::mapped(tracker, who, *start, *range),
        Operation::Unmap(ranges) if !success => virtual_memory::unmap_refused(tracker, who, std::mem::take(ranges)),
        Operation::UnmapUnknown if success => virtual_memory::unmapped_somewhere(tracker, who),
        Operation::Open(open) => return opens::returned(tracker, place, open, values, success).into_iter().collect(),
        Operation::Ask(support) if success => {
            return smallvec![Change::Support(Support { value: values.value, ..*support })];
        }
        Operation::Allocate(requested) => {
            if let Some(value) = given(values.pointer) {
                memory::allocated(tracker, who, value, *requested, Some(place));
                return smallvec![Change::Allocated(Handle { kind: Kind::Usm, value })];
            }
        }
        Operation::Close { pointer, serial, open, wrongly } => {
            return smallvec![mappings::closed(tracker, place, (*pointer, *serial), open, (success, *wrongly))];
        }
        Operation::Free(free) => return smallvec![memory::freed(tracker, place, free, success)],
        Operation::CreatePool => {
            if let Some(pool) = given(values.object) {
                pools::created(tracker, who, pool);
            }
        }
        Operation::RetainPool { pool, serial } => pools::retained(tracker, who, (*pool, *serial), success),
        Operation::ReleasePool { pool, serial, frees } => {
            return pools::released(tracker, place, (*pool, *serial), frees, success);
        }
        Operation::RetainContext { context, serial } => contexts::retained(tracker, who, *context, *serial, success),
        Operation::ReleaseContext { context, serial, shared } => {
            return contexts::released(tracker, place, (*context, *serial), shared.take(), success);
        }
        Operation::CreateContext(device) => {
            if let Some(context) = given(values.context) {
                contexts::created(tracker, place, context, *device);
            }
        }
        Operation::Enqueue if !success => commands::refused(tracker, who, place.call),
        Operation::Nothing
        | Operation::Enqueue
        | Operation::Wait(_)
        | Operation::Ask(_)
        | Operation::PutInherited { .. }
        | Operation::Map(..)
        | Operation::Unmap(_)
        | Operation::UnmapUnknown => {}
    }
    Changes::new()
}

/// A process has ended, and has no more records. Unless it exited, its mappings may be open for longer:
/// the time of a kill is known only from observers ([`Tracker::observed`]).
pub(super) fn end(tracker: &mut Tracker, who: ProcessId, how: End, at: Nanos) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let may_hold = how != End::Exited && how != End::Running;
    let mut mappings = std::mem::take(&mut state.mappings);
    if !may_hold {
        for (pointer, mapping) in std::mem::take(&mut mappings).iter() {
            if let Some(export) = mapping.export {
                exports.release(export, who, pointer);
            }
        }
    }
    for export in state.handles.values().filter_map(|data| data.export) {
        exports.retire(export);
    }
    for export in state.allocations.iter().flat_map(|(_, allocation)| &allocation.exports) {
        exports.retire(*export);
    }
    let over = ProcessState::new(state.process.clone(), Inherited::Nothing, Tombstones::default());
    *state = ProcessState {
        ended: Some((how, at)),
        mappings,
        observed: state.observed,
        ipc_calls: state.ipc_calls,
        data_sizes: std::mem::take(&mut state.data_sizes),
        adapters: std::mem::take(&mut state.adapters),
        devices: std::mem::take(&mut state.devices),
        ..over
    };
}
