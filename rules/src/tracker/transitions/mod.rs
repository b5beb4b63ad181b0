//! How the tracker moves: what each call does to what is alive.
//!
//! Death is at the enter, birth at the exit of a success. Every exit finds what its enter was about by serial number, so
//! that a late answer never touches a new life at an old address.

mod commands;
mod contexts;
pub(super) mod handles;
mod mappings;
mod memory;
mod objects;
mod opens;
mod pools;
mod virtual_memory;

use urscope_schema::{
    api::{Effect, Function},
    call::{Enter, Exit, Nanos, Values},
    handle::{Handle, Kind},
};

use super::{
    End, ProcessId, Tracker,
    exports::Exports,
    fact::{FactConsumer, Outcome, Support, What},
    pending::{Operation, PendingCall},
    process_state::{Inherited, ProcessState, place_of},
    ranges::Ranges,
    records::{Mapping, Requested, Serial, UsmType},
    seldom::OnDemand,
};
use crate::finding::Place;

impl Tracker {
    /// Whether an address is that of memory that an allocation has imported, and that its free closes.
    fn imported(&self, who: ProcessId, pointer: u64) -> bool {
        self.state(who).is_some_and(|state| state.is_imported(pointer))
    }

    pub(super) fn next_serial(&mut self) -> Serial {
        self.serial += 1;
        self.serial
    }
}

/// A call begins.
pub(super) fn enter(tracker: &mut Tracker, who: ProcessId, enter: &Enter) {
    let values = &enter.values;
    let place = place_of(who, enter);
    let mut pending = tracker.spare.take(place);
    match (enter.function.effect(), values.data) {
        (Effect::Makes(kind), _) if kind.shares().is_some() => {
            pending.operation = handles::get(tracker, who, kind, enter);
        }
        (Effect::Ends(kind), Some(value)) if kind.shares().is_some() => {
            let handle = Handle { kind, value };
            match handles::put(tracker, place, handle) {
                Some((serial, slot, true)) => pending.operation = Operation::Put { handle, serial, slot },
                Some((serial, _, false)) => pending.operation = Operation::PutOne { handle, serial },
                None => pending.operation = handles::put_of_other(tracker, who, handle),
            }
        }
        _ => pending.operation = begun(tracker, who, place, enter),
    }
    if let Some(state) = tracker.state_mut(who) {
        state.pending.insert(enter.call, pending);
    }
}

/// What a call that begins is about, other than those of handle data.
fn begun(tracker: &mut Tracker, who: ProcessId, place: Place, enter: &Enter) -> Operation {
    let values = &enter.values;
    match (enter.function.effect(), values.pointer) {
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

/// What a call is to allocate.
fn requested(enter: &Enter) -> Requested {
    let Values { size, device, context, object: pool, .. } = enter.values;
    Requested { usm: UsmType::of(enter.function), size, device: device.into(), context, pool: pool.into() }
}

/// A device is asked whether it can share something.
fn ask(values: &Values) -> Operation {
    let kind = [Kind::Usm, Kind::PhysicalMem, Kind::Event].into_iter().find(|kind| kind.support() == values.property);
    match (kind, values.device) {
        (Some(kind), Some(device)) => Operation::Ask(Support { device, kind, value: None }),
        _ => Operation::Nothing,
    }
}

/// A wait for one event. Of several it is not known which one it is that does not come.
fn wait(enter: &Enter) -> Operation {
    let waits = enter.function == Function::urEventWait && enter.values.count.is_none_or(|count| count == 1);
    let event = enter.values.object.filter(|event| waits && *event != 0);
    event.map_or(Operation::Nothing, |value| Operation::Wait(Handle { kind: Kind::Event, value }))
}

/// A call takes the object at an address for one of another kind. Whatever becomes of it, it is reported once.
fn end_wrongly(tracker: &mut Tracker, who: ProcessId, taken_for: Kind, value: u64) {
    let Some(state) = tracker.state_mut(who) else { return };
    let Some(is) = state.of_another_kind(taken_for, value).map(|confusion| confusion.is) else { return };
    if is.kind.shares().is_some() {
        handles::end_wrongly(tracker, who, is);
    } else if let Some(object) = state.seldom.object_mut(is) {
        object.ended_wrongly = true;
    } else if let Some(mapping) = state.mappings.get_mut(value) {
        mapping.ended_wrongly = true;
    }
}

/// A call returns. What its operation owns is taken out of `pending`; nothing else of it is copied.
pub(super) fn exit(
    tracker: &mut Tracker,
    pending: &mut PendingCall,
    exit: &Exit,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    let place = pending.place;
    let success = exit.result.is_success();
    let took = exit.time.0.saturating_sub(place.time.0);
    match &mut pending.operation {
        Operation::Get { kind, value, exported, slot, context, dangling } => {
            if let Some(made) = exit.values.data.filter(|data| success && *data != 0) {
                let from = handles::From { value: *value, exported: *exported, slot: *slot, context: *context };
                let data = Handle { kind: *kind, value: made };
                handles::got(tracker, place, from, data, (&exit.values, took), facts);
            }
            if let Some(dangling) = dangling {
                tracker.emit(facts, place, What::Dangling(dangling, outcome(exit)));
            }
        }
        Operation::Put { handle, serial, slot } => {
            handles::has_put(tracker, place, (*handle, *serial, *slot), success, took, facts);
        }
        other => ended(tracker, place, other, exit, facts),
    }
}

fn outcome(exit: &Exit) -> Outcome {
    if exit.result.is_success() { Outcome::Done } else { Outcome::Refused(exit.result) }
}

/// The operation of a call that returns, other than those of handle data.
fn ended(
    tracker: &mut Tracker,
    place: Place,
    operation: &mut Operation,
    exit: &Exit,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    let (success, values) = (exit.result.is_success(), &exit.values);
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    let outcome = outcome(exit);
    let who = place.process;
    match operation {
        Operation::FreeDangling(dangling) => tracker.emit(facts, place, What::Dangling(dangling, outcome)),
        Operation::Create { kind, origin, context, size } => {
            if let Some(value) = given(values.object) {
                let handle = Handle { kind: *kind, value };
                objects::made(tracker, place, handle, *origin, (*context, *size));
                tracker.emit(facts, place, What::Allocated(handle));
            }
        }
        Operation::Retain { object, serial } => objects::retained(tracker, who, *object, *serial, success),
        Operation::Release { object, serial, mapped } => {
            objects::released(tracker, place, (*object, *serial), mapped.take(), success, facts);
        }
        Operation::Map(start, range) if success => virtual_memory::mapped(tracker, who, *start, *range),
        Operation::Unmap(ranges) if !success => virtual_memory::unmap_refused(tracker, who, std::mem::take(ranges)),
        Operation::UnmapUnknown if success => virtual_memory::unmapped_somewhere(tracker, who),
        Operation::Open(open) => opens::returned(tracker, place, open, values, success, facts),
        Operation::Ask(support) if success => {
            tracker.has_denied |= values.value == Some(0);
            tracker.emit(facts, place, What::Support(Support { value: values.value, ..*support }));
        }
        Operation::Allocate(requested) => {
            if let Some(value) = given(values.pointer) {
                memory::allocated(tracker, who, value, *requested, Some(place));
                tracker.emit(facts, place, What::Allocated(Handle { kind: Kind::Usm, value }));
            }
        }
        Operation::PutOne { handle, serial } => handles::has_put_one(tracker, (*handle, *serial), place, success),
        Operation::PutInherited { handle, born } if success => handles::inherited_put(tracker, place, *handle, *born),
        Operation::Close { pointer, serial, open, wrongly } => {
            mappings::closed(tracker, place, (*pointer, *serial), open, (success, *wrongly), facts);
        }
        Operation::Free(free) => memory::freed(tracker, place, free, success, facts),
        Operation::CreatePool => {
            if let Some(pool) = given(values.object) {
                pools::created(tracker, who, pool);
            }
        }
        Operation::RetainPool { pool, serial } => pools::retained(tracker, who, (*pool, *serial), success),
        Operation::ReleasePool { pool, serial, frees } => {
            pools::released(tracker, place, (*pool, *serial), std::mem::take(frees), success, facts);
        }
        Operation::RetainContext { context, serial } => contexts::retained(tracker, who, *context, *serial, success),
        Operation::ReleaseContext { context, serial, shared } => {
            contexts::released(tracker, place, (*context, *serial), shared.take(), success, facts);
        }
        Operation::CreateContext(device) => {
            if let Some(context) = given(values.context) {
                contexts::created(tracker, place, context, *device);
            }
        }
        Operation::Enqueue if !success => commands::refused(tracker, who, place.call),
        Operation::Nothing
        | Operation::Enqueue
        | Operation::Get { .. }
        | Operation::Put { .. }
        | Operation::Wait(_)
        | Operation::Ask(_)
        | Operation::PutInherited { .. }
        | Operation::Map(..)
        | Operation::Unmap(_)
        | Operation::UnmapUnknown => {}
    }
}

/// A process is over: nothing more comes from it. Unless it has exited, what it had open may be open for longer: when it was killed
/// is known only as far as somebody saw it ([`Tracker::observed`]).
pub(super) fn end(tracker: &mut Tracker, who: ProcessId, how: End, at: Nanos) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let may_hold = how != End::Exited && how != End::Running;
    let mut mappings = std::mem::take(&mut state.mappings);
    if !may_hold {
        release_all(exports, who, &mut mappings);
    }
    for export in state.handles.values().filter_map(|data| data.export) {
        exports.retire(export);
    }
    for export in state.allocations.iter().flat_map(|(_, allocation)| &allocation.exports) {
        exports.retire(*export);
    }
    let (process, ipc_calls) = (state.process.clone(), state.ipc_calls);
    let adapters = std::mem::take(&mut state.adapters);
    let mut seldom = OnDemand::default();
    if let Some(before) = state.seldom.known().filter(|known| known.observed.is_some() || known.devices.len() > 0) {
        let kept = seldom.made();
        (kept.observed, kept.devices) = (before.observed, std::mem::take(&mut before.devices));
    }
    let none = ProcessState::new(process, Inherited::Nothing);
    *state = ProcessState { ended: Some((how, at)), mappings, adapters, seldom, ipc_calls, ..none };
}

fn release_all(exports: &mut Exports, who: ProcessId, mappings: &mut Ranges<Mapping>) {
    for (pointer, mapping) in mappings.iter() {
        if let Some(export) = mapping.export {
            exports.release(export, who, pointer);
        }
    }
    *mappings = Ranges::default();
}

/// Reports that what a call was to end is alive as before.
fn refused(tracker: &Tracker, at: Place, what: Handle, facts: &mut (impl FactConsumer + ?Sized)) {
    tracker.emit(facts, at, What::EndRefused(what));
}
