//! How the world moves: what each call does to what lives.
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
    contexts::{Remains, refer, released},
    handles::{get, got, has_put, put},
    mappings::{close, closed, opened},
    memory::{allocated, free, freed},
    objects::{imported, made, origin, release, retain, retained, unreferred},
};
use super::{
    End, ProcessId, World, devices,
    exports::{ExportId, Subject},
    opens,
    process::{Aim, ContextLife, Inherited, Life, Pending, place_of},
    received,
    received::Denied,
    records::{Origin, Serial},
    scene::{Freed, Opened, Over, Stale, Stray, Waiting},
    slabs,
};
use crate::finding::Place;

/// What an exit made visible.
pub(super) enum Outcome {
    /// Memory or an object on which something hung has been freed.
    Freed(Place, Box<Freed>),
    /// A call took an address for memory of this process, where none is any more.
    Astray(Place, Box<Stray>, Opened),
    /// A context has been released for the last time, with this left in it.
    Released(Place, Box<Remains>),
}

impl World {
    fn next_serial(&mut self) -> Serial {
        self.serial += 1;
        self.serial
    }
}

/// A call begins.
pub(super) fn enter(world: &mut World, who: ProcessId, enter: &Enter) {
    let values = &enter.values;
    let place = place_of(who, enter);
    let context = values.context;
    let aim = match (enter.function.effect(), values.pointer, values.data) {
        (Effect::Makes(kind), pointer, _) if kind.shares().is_some() => {
            get(world, who, kind, (pointer, values.object, context))
        }
        (Effect::Makes(kind), ..) if let Some(data) = opens(enter.function) => open(world, who, (kind, data), values),
        (Effect::Makes(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => {
            Aim::Make { kind, origin: origin(values.flags), context, size: values.size }
        }
        (Effect::Retains(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => retain(world, who, kind, values.object),
        (Effect::Releases(kind @ (Kind::PhysicalMem | Kind::Event)), ..) => release(world, who, kind, values.object),
        (Effect::Makes(Kind::Usm), ..) => Aim::Allocate { size: values.size, device: values.device },
        (Effect::Makes(Kind::Context), ..) => Aim::Context(devices::only(values)),
        (Effect::Asks(Kind::Device), ..) => ask(place, values),
        (Effect::Ends(kind), _, Some(value)) if kind.shares().is_some() => put(world, place, Handle { kind, value }),
        (Effect::Ends(Kind::Mapping), Some(pointer), _) => close(world, who, pointer, context),
        (Effect::Ends(Kind::Usm), Some(pointer), _) => free(world, who, pointer),
        (Effect::Uses(Kind::Event), ..) => wait(enter),
        (Effect::Retains(Kind::Context), ..) => refer(world, who, context, true),
        (Effect::Releases(Kind::Context), ..) => refer(world, who, context, false),
        _ => Aim::Nothing,
    };
    if let Aim::Open { export, fingerprint: Some(_), .. } = &aim {
        attempt(world, who, *export);
    }
    let abroad = world.life(who).and_then(|life| world.abroad(life, enter));
    if let Some(life) = world.life_mut(who) {
        let denied = received::denied(life, enter);
        received::note(life, &aim);
        life.pending.insert(enter.call, Pending { place, aim, denied, abroad });
    }
}

/// A device is asked whether it can share something.
fn ask(asked: Place, values: &Values) -> Aim {
    let kind = [Kind::Usm, Kind::PhysicalMem, Kind::Event].into_iter().find(|kind| kind.support() == values.property);
    match (kind, values.device) {
        (Some(kind), Some(device)) => Aim::Ask(Denied { device, kind, asked }),
        _ => Aim::Nothing,
    }
}

/// Handle data is to be opened, of that export, or of one that nobody has been seen to get.
fn attempt(world: &mut World, who: ProcessId, export: Option<ExportId>) {
    let Some(host) = world.process(who).map(|process| process.host) else { return };
    match export.map(|id| world.exports.attempt(id)) {
        Some(producer) => {
            if producer.is_some_and(|producer| producer != who) {
                world.exchanging.insert(host);
            }
        }
        None => {
            world.strangers.insert(host);
        }
    }
}

/// A wait for one event. Of several it is not known which one it is that does not come.
fn wait(enter: &Enter) -> Aim {
    let waits = enter.function == Function::urEventWait && enter.values.count.is_none_or(|count| count == 1);
    let event = enter.values.object.filter(|_| waits);
    event.map_or(Aim::Nothing, |value| Aim::Wait(Handle { kind: Kind::Event, value }))
}

/// An open begins: which export its bytes are of, and whether they are worth nothing by now.
fn open(world: &World, who: ProcessId, (kind, of): (Kind, Kind), values: &Values) -> Aim {
    let Values { context, fingerprint, data, data_size: size, .. } = *values;
    let of_this_kind = |id: &ExportId| world.exports.get(*id).is_some_and(|found| found.subject.kind == of);
    let export = world.export_of(who, fingerprint).filter(of_this_kind);
    let stale = export.and_then(|id| {
        let found = world.exports.get(id)?;
        let over = match world.exports.freed(id) {
            None => Over::Put(world.exports.over(id)?),
            Some(freed) => {
                let now = world.life(found.got.process).zip(found.subject.value);
                let now = now.and_then(|(life, pointer)| life.allocation_at(pointer));
                now.map_or(Over::Freed(freed), |(_, reborn)| Over::Reborn(freed, reborn.born))
            }
        };
        let handle = Handle { kind: found.subject.kind, value: data.unwrap_or_default() };
        let Subject { value, size, .. } = found.subject;
        Some(Box::new(Stale { handle, got: found.got, over, value, size, fingerprint: found.fingerprint() }))
    });
    Aim::Open { kind, context, fingerprint, export, stale, data, size }
}

/// A call takes the object at an address for one of another kind. Whatever becomes of it, it is told once.
fn accuse(world: &mut World, who: ProcessId, taken_for: Kind, value: u64) {
    let Some(life) = world.life_mut(who) else { return };
    let Some((is, _)) = life.of_another_kind(taken_for, value) else { return };
    if is.kind.shares().is_some() {
        handles::accuse(world, who, is);
    } else if let Some(object) = life.objects.get_mut(&is) {
        object.accused = true;
    } else if let Some(mapped) = life.mappings.get_mut(&value) {
        mapped.accused = true;
    }
}

/// A call returns.
pub(super) fn exit(world: &mut World, who: ProcessId, exit: &Exit) -> Option<Outcome> {
    let Exit { function, call, tid, time, result, values } = *exit;
    let life = world.life_mut(who)?;
    let pending = life.pending.remove(&exit.call);
    let took = pending.as_ref().map_or(0, |pending| time.0.saturating_sub(pending.place.time.0));
    if let Some(pending) = &pending {
        life.pace.note(pending.place, time);
    }
    // Where the enter is missing, what is born is known at least, so that its end is no surprise.
    let (place, aim) = match (pending, function.effect()) {
        (Some(pending), _) => (pending.place, pending.aim),
        (None, effect) => {
            let place = Place { process: who, tid, time, call: Some(call), function: Some(function), stack: None };
            let aim = match effect {
                Effect::Makes(kind) if kind.shares().is_some() => {
                    Aim::Get { kind, pointer: None, exported: None, context: None, stray: None }
                }
                Effect::Makes(kind) if opens(function).is_some() => Aim::Open {
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
                    Aim::Make { kind, origin: Origin::Shareable, context: None, size: None }
                }
                Effect::Makes(Kind::Usm) => Aim::Allocate { size: None, device: None },
                Effect::Makes(Kind::Context) => Aim::Context(None),
                _ => Aim::Nothing,
            };
            (place, aim)
        }
    };
    let success = result.is_success();
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    match aim {
        Aim::Get { kind, pointer, exported, context, stray } => {
            if let Some(value) = given(values.data) {
                let handle = Handle { kind, value };
                got(world, place, (pointer, exported, context), handle, (values.fingerprint, took));
                slabs::expose(world, place, exported, &values);
            }
            let opened = if success { Opened::Well } else { Opened::Not(result) };
            return stray.map(|stray| Outcome::Astray(place, stray, opened));
        }
        Aim::FreeStray(stray) => {
            let opened = if success { Opened::Well } else { Opened::Not(result) };
            return Some(Outcome::Astray(place, stray, opened));
        }
        Aim::Make { kind, origin, context, size } => {
            if let Some(value) = given(values.object) {
                made(world, place, Handle { kind, value }, origin, (context, size));
            }
        }
        Aim::Refer { object, serial } => retained(world, who, object, serial, success),
        Aim::Unrefer { object, serial } => return unreferred(world, place, object, serial, success),
        Aim::Open { kind, context, fingerprint, export, .. } => match (given(values.pointer), given(values.object)) {
            (Some(pointer), _) if kind == Kind::Mapping => {
                opened(world, place, pointer, context, fingerprint, export);
            }
            (_, Some(value)) => imported(world, place, Handle { kind, value }, context, (fingerprint, export)),
            _ => {}
        },
        Aim::Ask(asked) if success => received::answered(world.life_mut(who)?, asked, values.value),
        Aim::Allocate { size, device } => {
            if let Some(pointer) = given(values.pointer) {
                allocated(world, who, pointer, (size, device), Some(place));
            }
        }
        Aim::Put { handle, serial } => has_put(world, place, (handle, serial), success, took),
        Aim::Close { pointer, serial, taken, accuse } => {
            closed(world, place, pointer, serial, taken, success, accuse);
        }
        Aim::Free { freed: gone } => {
            let pointer = gone.what.value;
            let life = world.life_mut(who)?;
            let same = life.allocations.get_mut(&pointer).filter(|allocation| allocation.serial == gone.serial);
            match (same, success) {
                (Some(allocation), false) => allocation.dying = false,
                (Some(_), true) => freed(world, place, pointer),
                (None, _) => {}
            }
            if success && gone.holders + gone.handles > 0 {
                return Some(Outcome::Freed(place, gone));
            }
        }
        Aim::Retain { context, serial } => {
            let counted = world.life_mut(who)?.contexts.get_mut(&context);
            if let Some(counted) = counted.filter(|counted| !success && counted.serial == serial) {
                counted.references = counted.references.saturating_sub(1);
            }
        }
        Aim::Release { context, serial, last } => return released(world, place, context, serial, last, success),
        Aim::Context(device) => {
            if let Some(context) = given(values.context) {
                let serial = world.next_serial();
                let context_life = ContextLife { serial, references: 1, born: place, device };
                world.life_mut(who)?.contexts.insert(context, context_life);
            }
        }
        Aim::Nothing | Aim::Wait(_) | Aim::Ask(_) => {}
    }
    None
}

/// A process is over: nothing is open in it, nothing more comes from it.
pub(super) fn bury(world: &mut World, who: ProcessId, how: End, at: Nanos) {
    let World { lives, exports, waits, .. } = world;
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
        let Aim::Wait(event) = pending.aim else { continue };
        let Some(imported) = life.objects.get(&event) else { continue };
        if let Some(source) = imported.source {
            let fingerprint = imported.fingerprint;
            waits.push(Waiting { wait: pending.place, event, fingerprint, source, late: false });
        }
    }
    let (process, strangers, ipc_calls) = (life.process.clone(), life.strangers, life.ipc_calls);
    *life = Life { ended: Some((how, at)), strangers, ipc_calls, ..Life::new(process, Inherited::Nothing) };
}
