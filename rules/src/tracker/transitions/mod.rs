//! How the tracker moves: what each call does to what lives.
//!
//! Death is at the enter, birth at the exit of a success. Every exit finds what its enter aimed at by serial number, so
//! that a late answer never touches a new life at an old address.

pub(super) mod contexts;
mod handles;
mod mappings;
mod memory;
mod objects;

use urscope_schema::{
    api::{Effect, Function},
    call::{Enter, Exit, Nanos, Values},
    handle::{Handle, Kind},
};

use self::{
    contexts::{Leftovers, refer, released},
    handles::{get, got, has_put, put},
    mappings::{close, closed, opened},
    memory::{allocated, free, freed},
    objects::{imported, made, origin, release, retain, retained, unreferred},
};
use super::{
    End, ProcessId, Tracker, devices,
    exports::{ExportId, Subject},
    fact::{DanglingUse, Freed, Opened, Over, Stale, Waiting},
    opens,
    process_state::{ContextState, Inherited, Operation, PendingCall, ProcessState, place_of},
    received,
    received::Denied,
    records::{Origin, Serial},
    slabs,
};
use crate::finding::Place;

/// What an exit made visible.
pub(super) enum Outcome {
    /// Memory or an object on which something hung has been freed.
    Freed(Place, Box<Freed>),
    /// A call took an address for memory of this process, where none is any more.
    Dangling(Place, Box<DanglingUse>, Opened),
    /// A context has been released for the last time, with this left in it.
    Released(Place, Box<Leftovers>),
}

impl Tracker {
    fn next_serial(&mut self) -> Serial {
        self.serial += 1;
        self.serial
    }
}

/// A call begins.
pub(super) fn enter(tracker: &mut Tracker, who: ProcessId, enter: &Enter) {
    let values = &enter.values;
    let place = place_of(who, enter);
    let context = values.context;
    let operation = match (enter.function.effect(), values.pointer, values.data) {
        (Effect::Makes(kind), pointer, _) if kind.shares().is_some() => {
            get(tracker, who, kind, (pointer, values.object, context))
        }
        (Effect::Makes(kind), ..) if let Some(data) = opens(enter.function) => open(tracker, who, (kind, data), values),
        (Effect::Makes(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => {
            Operation::Make { kind, origin: origin(values.flags), context, size: values.size }
        }
        (Effect::Retains(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => retain(tracker, who, kind, values.object),
        (Effect::Releases(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => release(tracker, who, kind, values.object),
        (Effect::Makes(Kind::Usm), ..) => Operation::Allocate { size: values.size, device: values.device },
        (Effect::Makes(Kind::Context), ..) => Operation::Context(devices::only(values)),
        (Effect::Asks(Kind::Device), ..) => ask(place, values),
        (Effect::Ends(kind), _, Some(value)) if kind.shares().is_some() => put(tracker, place, Handle { kind, value }),
        (Effect::Ends(Kind::Mapping), Some(pointer), _) => close(tracker, who, pointer, context),
        (Effect::Ends(Kind::Usm), Some(pointer), _) => free(tracker, who, pointer),
        (Effect::Uses(Kind::Event), ..) => wait(enter),
        (Effect::Retains(Kind::Context), ..) => refer(tracker, who, context, true),
        (Effect::Releases(Kind::Context), ..) => refer(tracker, who, context, false),
        _ => Operation::Nothing,
    };
    if let Operation::Open { export, fingerprint: Some(_), .. } = &operation {
        attempt(tracker, who, *export);
    }
    let wrong_device = tracker.life(who).and_then(|life| tracker.wrong_device(life, enter));
    if let Some(life) = tracker.life_mut(who) {
        let denied = received::denied(life, enter);
        received::note(life, &operation);
        life.pending.insert(enter.call, PendingCall { place, operation, denied, wrong_device });
    }
}

/// A device is asked whether it can share something.
fn ask(asked: Place, values: &Values) -> Operation {
    let kind = [Kind::Usm, Kind::PhysicalMem, Kind::Event].into_iter().find(|kind| kind.support() == values.property);
    match (kind, values.device) {
        (Some(kind), Some(device)) => Operation::Ask(Denied { device, kind, asked }),
        _ => Operation::Nothing,
    }
}

/// Handle data is to be opened, of that export, or of one that nobody has been seen to get.
fn attempt(tracker: &mut Tracker, who: ProcessId, export: Option<ExportId>) {
    let Some(host) = tracker.process(who).map(|process| process.host) else { return };
    match export.map(|id| tracker.exports.attempt(id)) {
        Some(producer) => {
            if producer.is_some_and(|producer| producer != who) {
                tracker.exchanging.insert(host);
            }
        }
        None => {
            tracker.strangers.insert(host);
        }
    }
}

/// A wait for one event. Of several it is not known which one it is that does not come.
fn wait(enter: &Enter) -> Operation {
    let waits = enter.function == Function::urEventWait && enter.values.count.is_none_or(|count| count == 1);
    let event = enter.values.object.filter(|_| waits);
    event.map_or(Operation::Nothing, |value| Operation::Wait(Handle { kind: Kind::Event, value }))
}

/// An open begins: which export its bytes are of, and whether they are worth nothing by now.
fn open(tracker: &Tracker, who: ProcessId, (kind, of): (Kind, Kind), values: &Values) -> Operation {
    let Values { context, fingerprint, data, data_size: size, .. } = *values;
    let of_this_kind = |id: &ExportId| tracker.exports.get(*id).is_some_and(|found| found.subject.kind == of);
    let export = tracker.export_of(who, fingerprint).filter(of_this_kind);
    let stale = export.and_then(|id| {
        let found = tracker.exports.get(id)?;
        let over = match tracker.exports.freed(id) {
            None => Over::Put(tracker.exports.over(id)?),
            Some(freed) => {
                let now = tracker.life(found.got.process).zip(found.subject.value);
                let now = now.and_then(|(life, pointer)| life.allocation_at(pointer));
                now.map_or(Over::Freed(freed), |(_, reborn)| Over::Reborn(freed, reborn.born))
            }
        };
        let handle = Handle { kind: found.subject.kind, value: data.unwrap_or_default() };
        let Subject { value, size, .. } = found.subject;
        Some(Box::new(Stale { handle, got: found.got, over, value, size, fingerprint: found.fingerprint() }))
    });
    Operation::Open { kind, context, fingerprint, export, stale, data, size }
}

/// A call takes the object at an address for one of another kind. Whatever becomes of it, it is told once.
fn accuse(tracker: &mut Tracker, who: ProcessId, taken_for: Kind, value: u64) {
    let Some(life) = tracker.life_mut(who) else { return };
    let Some((is, _)) = life.of_another_kind(taken_for, value) else { return };
    if is.kind.shares().is_some() {
        handles::accuse(tracker, who, is);
    } else if let Some(object) = life.objects.get_mut(&is) {
        object.accused = true;
    } else if let Some(mapped) = life.mappings.get_mut(&value) {
        mapped.accused = true;
    }
}

/// A call returns.
pub(super) fn exit(tracker: &mut Tracker, who: ProcessId, exit: &Exit) -> Option<Outcome> {
    let Exit { function, call, tid, time, result, values } = *exit;
    let life = tracker.life_mut(who)?;
    let pending = life.pending.remove(&exit.call);
    let took = pending.as_ref().map_or(0, |pending| time.0.saturating_sub(pending.place.time.0));
    if let Some(pending) = &pending {
        life.pace.note(pending.place, time);
    }
    // Where the enter is missing, what is born is known at least, so that its end is no surprise.
    let (place, operation) = match (pending, function.effect()) {
        (Some(pending), _) => (pending.place, pending.operation),
        (None, effect) => {
            let place = Place { process: who, tid, time, call: Some(call), function: Some(function), stack: None };
            let operation = match effect {
                Effect::Makes(kind) if kind.shares().is_some() => {
                    Operation::Get { kind, pointer: None, exported: None, context: None, dangling: None }
                }
                Effect::Makes(kind) if opens(function).is_some() => Operation::Open {
                    kind,
                    context: None,
                    fingerprint: None,
                    export: None,
                    stale: None,
                    data: None,
                    size: None,
                },
                // Its flags are not known: what is shareable is never accused.
                Effect::Makes(kind @ (Kind::PhysicalMem | Kind::Event)) => {
                    Operation::Make { kind, origin: Origin::Shareable, context: None, size: None }
                }
                Effect::Makes(Kind::Usm) => Operation::Allocate { size: None, device: None },
                Effect::Makes(Kind::Context) => Operation::Context(None),
                _ => Operation::Nothing,
            };
            (place, operation)
        }
    };
    let success = result.is_success();
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    match operation {
        Operation::Get { kind, pointer, exported, context, dangling } => {
            if let Some(value) = given(values.data) {
                let handle = Handle { kind, value };
                got(tracker, place, (pointer, exported, context), handle, (values.fingerprint, took));
                slabs::expose(tracker, place, exported, &values);
            }
            let opened = if success { Opened::Well } else { Opened::Not(result) };
            return dangling.map(|dangling| Outcome::Dangling(place, dangling, opened));
        }
        Operation::FreeDangling(dangling) => {
            let opened = if success { Opened::Well } else { Opened::Not(result) };
            return Some(Outcome::Dangling(place, dangling, opened));
        }
        Operation::Make { kind, origin, context, size } => {
            if let Some(value) = given(values.object) {
                made(tracker, place, Handle { kind, value }, origin, (context, size));
            }
        }
        Operation::Refer { object, serial } => retained(tracker, who, object, serial, success),
        Operation::Unrefer { object, serial } => return unreferred(tracker, place, object, serial, success),
        Operation::Open { kind, context, fingerprint, export, .. } => {
            match (given(values.pointer), given(values.object)) {
                (Some(pointer), _) if kind == Kind::Mapping => {
                    opened(tracker, place, pointer, context, fingerprint, export);
                }
                (_, Some(value)) => imported(tracker, place, Handle { kind, value }, context, (fingerprint, export)),
                _ => {}
            }
        }
        Operation::Ask(asked) if success => received::answered(tracker.life_mut(who)?, asked, values.value),
        Operation::Allocate { size, device } => {
            if let Some(pointer) = given(values.pointer) {
                allocated(tracker, who, pointer, (size, device), Some(place));
            }
        }
        Operation::Put { handle, serial } => has_put(tracker, place, (handle, serial), success, took),
        Operation::Close { pointer, serial, taken, accuse } => {
            closed(tracker, place, pointer, serial, taken, success, accuse);
        }
        Operation::Free { freed: gone } => {
            let pointer = gone.what.value;
            let life = tracker.life_mut(who)?;
            let same = life.allocations.get_mut(&pointer).filter(|allocation| allocation.serial == gone.serial);
            match (same, success) {
                (Some(allocation), false) => allocation.dying = false,
                (Some(_), true) => freed(tracker, place, pointer),
                (None, _) => {}
            }
            if success && gone.holders + gone.handles > 0 {
                return Some(Outcome::Freed(place, gone));
            }
        }
        Operation::Retain { context, serial } => {
            let counted = tracker.life_mut(who)?.contexts.get_mut(&context);
            if let Some(counted) = counted.filter(|counted| !success && counted.serial == serial) {
                counted.references = counted.references.saturating_sub(1);
            }
        }
        Operation::Release { context, serial, last } => {
            return released(tracker, place, context, serial, last, success);
        }
        Operation::Context(device) => {
            if let Some(context) = given(values.context) {
                let serial = tracker.next_serial();
                let context_life = ContextState { serial, references: 1, born: place, device };
                tracker.life_mut(who)?.contexts.insert(context, context_life);
            }
        }
        Operation::Nothing | Operation::Wait(_) | Operation::Ask(_) => {}
    }
    None
}

/// A process is over: nothing is open in it, nothing more comes from it.
pub(super) fn bury(tracker: &mut Tracker, who: ProcessId, how: End, at: Nanos) {
    let Tracker { lives, exports, waits, .. } = tracker;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    for (pointer, mapped) in &life.mappings {
        if let Some(export) = mapped.export {
            exports.release(export, who, *pointer);
        }
    }
    for export in life.handles.values().filter_map(|got| got.export) {
        exports.retire(export);
    }
    for export in life.allocations.values().flat_map(|allocation| &allocation.exports) {
        exports.retire(*export);
    }
    for pending in life.pending.values() {
        let Operation::Wait(event) = pending.operation else { continue };
        let Some(imported) = life.objects.get(&event) else { continue };
        if let Some(source) = imported.source {
            let fingerprint = imported.fingerprint;
            waits.push(Waiting { wait: pending.place, event, fingerprint, source, late: false });
        }
    }
    let (process, strangers, ipc_calls) = (life.process.clone(), life.strangers, life.ipc_calls);
    *life =
        ProcessState { ended: Some((how, at)), strangers, ipc_calls, ..ProcessState::new(process, Inherited::Nothing) };
}
