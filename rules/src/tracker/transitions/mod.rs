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
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{Create, Free, Operation, Returned};
use urscope_schema::{api::ResultCode, call::Nanos};

use super::changes::{Change, Changes};
use super::pending::{PendingCall, PendingChange, Releasing};
use super::process_state::{DataSize, Inherited, ProcessState};
use super::{observations::Support, process::End, records::Origin, state::Tracker, tombstones::Tombstones};
use crate::place::{Place, ProcessId};

/// A call begins.
pub(super) fn enter(tracker: &mut Tracker, at: Place, operation: &Operation) {
    let change = begun(tracker, at, operation);
    let Some(call) = at.call else { return };
    if let Some(state) = tracker.state_mut(at.process) {
        state.pending.add(call.get(), at, operation, change);
    }
}

/// The change that a call which begins is to make when it returns.
fn begun(tracker: &mut Tracker, at: Place, operation: &Operation) -> PendingChange {
    let who = at.process;
    match *operation {
        Operation::Allocate(requested) => PendingChange::Allocate(requested),
        Operation::Free(free) => memory::free(tracker, at, &free),
        Operation::Create(create) => PendingChange::Create(create),
        Operation::CreateContext(device) => PendingChange::CreateContext(device),
        Operation::CreatePool => PendingChange::CreatePool,
        Operation::Retain(Kind::Context, context) => contexts::retain(tracker, who, context),
        Operation::Retain(Kind::Pool, pool) => pools::retain(tracker, who, pool),
        Operation::Retain(kind, object) => objects::retain(tracker, who, kind, object),
        Operation::Release(Kind::Context, context) => contexts::release(tracker, at, context, Releasing::Reference),
        Operation::RetainMade(kind) => PendingChange::RetainMade(kind),
        Operation::RetainPrimary(device) => PendingChange::RetainPrimary(device),
        Operation::ReleasePrimary(device) => {
            contexts::release(tracker, at, contexts::primary(tracker, who, device), Releasing::Reference)
        }
        Operation::ResetPrimary(device) => {
            contexts::release(tracker, at, contexts::primary(tracker, who, device), Releasing::Contents)
        }
        Operation::Release(Kind::Pool, pool) => pools::release(tracker, at, pool),
        Operation::Release(kind, object) | Operation::Destroy(kind, object) if kind.is_object() => {
            objects::release(tracker, who, kind, object)
        }
        Operation::Export(export) => handles::get(tracker, at, &export),
        Operation::Put(handle, _) => handles::put(tracker, at, handle),
        Operation::Open(ref open) => opens::open(tracker, who, open),
        Operation::Close(Free { pointer: Some(pointer), context, .. }) => {
            mappings::close(tracker, at, pointer, context)
        }
        Operation::AskSupport(device, kind) => PendingChange::Ask(Support { device, kind, value: None }),
        Operation::Map { pointer, size, memory } => virtual_memory::map(tracker, at, pointer, size, memory),
        Operation::Unmap { from: Free { pointer: Some(pointer), .. }, size } => {
            virtual_memory::unmap(tracker, who, pointer, size)
        }
        Operation::Enqueue(command) => commands::enqueue(tracker, at, &command),
        Operation::Wait(value) => PendingChange::Wait(Handle { kind: Kind::Event, value }),
        Operation::Release(..)
        | Operation::Destroy(..)
        | Operation::Close(_)
        | Operation::Unmap { .. }
        | Operation::UseEvent(_)
        | Operation::Execute(_)
        | Operation::Submit
        | Operation::Other => PendingChange::Nothing,
    }
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

/// A call returns. The data of its change is moved out of `pending`.
pub(super) fn exit(tracker: &mut Tracker, pending: &mut PendingCall, exit: &Returned) -> Changes {
    let PendingCall { place, operation, change } = pending;
    let place = *place;
    let success = exit.result.is_success();
    let answer = &exit.answer;
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    let who = place.process;
    let made = given(answer.made);
    if exit.result.meaning_of(exit.function) == ResultCode::DEVICE_LOST {
        commands::device_failed(tracker, place, exit.result);
    }
    match change {
        PendingChange::Get { kind, value, exported, context, dangling } => {
            let mut changes = Changes::new();
            if let (Some(size), Some(state)) = (given(answer.data_size), tracker.state_mut(who))
                && answer.made != Some(0)
            {
                state.note_data_size(DataSize { kind: *kind, size, got: place });
            }
            if let Some(made) = made {
                let from = handles::From { value: *value, exported: *exported, context: *context };
                changes.push(handles::got(tracker, place, from, Handle { kind: *kind, value: made }, answer));
            }
            changes.extend(dangling.take().map(Change::Dangling));
            return changes;
        }
        PendingChange::Put(data) => return handles::has_put(tracker, place, *data, success),
        PendingChange::PutOne(data) => handles::has_put_one(tracker, place, *data, success),
        PendingChange::PutInherited { handle, born } if success => {
            handles::inherited_put(tracker, place, *handle, *born);
        }
        PendingChange::FreeDangling(dangling) => return smallvec![Change::Dangling(dangling.clone())],
        PendingChange::Create(Create { kind, is_shareable, context, size, .. }) => {
            if let Some(value) = made {
                let handle = Handle { kind: *kind, value };
                let origin = if *is_shareable { Origin::Shareable } else { Origin::Plain };
                objects::made(tracker, place, handle, origin, *context, *size);
                return smallvec![Change::Allocated(handle)];
            }
        }
        PendingChange::Retain(life) => match life.handle.kind {
            Kind::Pool => pools::retained(tracker, who, *life, success),
            Kind::Context => contexts::retained(tracker, who, *life, success),
            _ => objects::retained(tracker, who, *life, success),
        },
        PendingChange::Release { object, mapped } => {
            return objects::released(tracker, place, *object, mapped.take(), success).into_iter().collect();
        }
        PendingChange::Map(start, range, before) if success => {
            virtual_memory::mapped(tracker, who, *start, *range, before);
        }
        PendingChange::Unmap(ranges) => {
            virtual_memory::unmapped(tracker, place, std::mem::take(ranges), success);
        }
        PendingChange::UnmapUnknown if success => virtual_memory::unmapped_somewhere(tracker, who),
        PendingChange::Open(pending) => {
            let Operation::Open(open) = operation else { return Changes::new() };
            return opens::returned(tracker, place, open, pending, made, exit).into_iter().collect();
        }
        PendingChange::Ask(support) if success => {
            return smallvec![Change::Support(Support { value: answer.value, ..*support })];
        }
        PendingChange::Allocate(requested) => {
            if let Some(value) = made {
                memory::allocated(tracker, who, value, *requested, Some(place));
                return smallvec![Change::Allocated(Handle { kind: Kind::Usm, value })];
            }
        }
        PendingChange::Close(close) => return smallvec![mappings::closed(tracker, place, close, success)],
        PendingChange::Free(free) => return smallvec![memory::freed(tracker, place, free, success)],
        PendingChange::CreatePool => {
            if let Some(pool) = made {
                pools::created(tracker, who, pool);
            }
        }
        PendingChange::ReleasePool { pool, frees } => return pools::released(tracker, place, *pool, frees, success),
        PendingChange::ReleaseContext { context, how, ends } => {
            return contexts::released(tracker, place, *context, *how, ends.as_mut(), success);
        }
        PendingChange::CreateContext(device) => {
            if let Some(context) = made {
                contexts::created(tracker, place, context, *device, false);
            }
        }
        PendingChange::RetainMade(kind) => objects::retained_or_made(tracker, place, *kind, made),
        PendingChange::RetainPrimary(device) => contexts::retained_primary(tracker, place, made, *device),
        PendingChange::Enqueue => {
            tracker.call_returned(who, place.tid);
            if !success {
                commands::refused(tracker, who, place.call);
                tracker.command_refused(place);
            }
        }
        PendingChange::Nothing
        | PendingChange::Wait(_)
        | PendingChange::Ask(_)
        | PendingChange::PutInherited { .. }
        | PendingChange::Map(..)
        | PendingChange::UnmapUnknown => {}
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
    for (handle, object) in &state.objects {
        if let Some(export) = object.export {
            exports.release(export, who, handle.value);
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
        device_error: state.device_error.take(),
        ipc_calls: state.ipc_calls,
        data_sizes: std::mem::take(&mut state.data_sizes),
        adapters: std::mem::take(&mut state.adapters),
        devices: std::mem::take(&mut state.devices),
        ..over
    };
}
