//! How the world moves: what each call does to what lives.
//!
//! Death is at the enter, birth at the exit of a success. Every exit finds what its enter aimed at by serial number, so
//! that a late answer never touches a new life at an old address.

use std::collections::BTreeSet;

use urscope_schema::{
    api::Effect,
    call::{Enter, Exit},
    handle::{Handle, Kind},
};

use super::{
    ProcessId, World,
    process::{Aim, ContextLife, Inherited, Life, Pending, place_of},
    records::{Allocation, Got, Grave, Mapped, Serial},
    scene::Freed,
};
use crate::{
    finding::Place,
    life::{Event, State, step},
};

/// What an exit made visible.
pub(super) enum Outcome {
    /// Memory on which something hung has been freed.
    Freed(Place, Box<Freed>),
    /// A context has been released for the last time, with these mappings open in it.
    Released(Place, Vec<(u64, Mapped)>),
}

/// From so many exports of one allocation on, those are looked for that are forgotten already.
const MANY_EXPORTS: usize = 1024;

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
        (Effect::Makes(Kind::MemHandle), pointer, _) => {
            let life = world.life(who);
            let allocation = pointer.and_then(|pointer| life?.allocation_at(pointer)).map(|(_, found)| found.serial);
            Aim::Get { pointer, allocation }
        }
        (Effect::Makes(Kind::Mapping), ..) => {
            let (fingerprint, host) = (values.fingerprint, world.process(who).map(|process| process.host));
            let export = host.zip(fingerprint).and_then(|(host, bytes)| world.exports.of_bytes(host, bytes));
            Aim::Open { context, fingerprint, export }
        }
        (Effect::Makes(Kind::Usm), ..) => Aim::Allocate { size: values.size },
        (Effect::Ends(Kind::MemHandle), _, Some(data)) => put(world, who, data),
        (Effect::Ends(Kind::Mapping), Some(pointer), _) => close(world, who, pointer, context),
        (Effect::Ends(Kind::Usm), Some(pointer), _) => free(world, who, pointer),
        (Effect::Retains(Kind::Context), ..) => refer(world, who, context, true),
        (Effect::Releases(Kind::Context), ..) => refer(world, who, context, false),
        _ => Aim::Nothing,
    };
    if let Some(life) = world.life_mut(who) {
        life.pending.insert(enter.call, Pending { place, aim });
    }
}

fn put(world: &mut World, who: ProcessId, data: u64) -> Aim {
    let Some(got) = world.life_mut(who).and_then(|life| life.handles.get_mut(&data)) else { return Aim::Nothing };
    let before = got.state;
    got.state = step(before, Event::Ending).next;
    let (serial, export) = (got.serial, got.export);
    if let (State::Alive, Some(export)) = (before, export) {
        world.exports.put(export);
    }
    Aim::Put { data, serial }
}

fn close(world: &mut World, who: ProcessId, pointer: u64, context: Option<u64>) -> Aim {
    let Some(life) = world.life_mut(who) else { return Aim::Nothing };
    let buried = life.graves.get(Handle { kind: Kind::Mapping, value: pointer }).is_some();
    let around = if buried { None } else { life.mapping_around(pointer).map(|(base, _)| base) };
    let base = if life.mappings.contains_key(&pointer) { Some(pointer) } else { around };
    let Some((base, mapped)) = base.and_then(|base| Some((base, life.mappings.get_mut(&base)?))) else {
        return Aim::Nothing;
    };
    let accuse = base != pointer || !mapped.is_open_in(context);
    let Some(taken) = mapped.take(context) else { return Aim::Nothing };
    mapped.closed += 1;
    mapped.closing += 1;
    let (serial, export, last) = (mapped.serial, mapped.export, mapped.opens.is_empty());
    if last {
        mapped.state = step(mapped.state, Event::Ending).next;
        if let Some(export) = export {
            world.exports.release(export, who, base);
        }
    }
    Aim::Close { pointer: base, serial, taken, accuse }
}

fn free(world: &mut World, who: ProcessId, pointer: u64) -> Aim {
    let Some(life) = world.life_mut(who) else { return Aim::Nothing };
    let Some(allocation) = life.allocations.get_mut(&pointer).filter(|allocation| !allocation.dying) else {
        let base = life.mapping_around(pointer).map_or(pointer, |(base, _)| base);
        if let Some(mapped) = life.mappings.get_mut(&base) {
            mapped.accused = true;
        }
        return Aim::Nothing;
    };
    allocation.dying = true;
    let (serial, size) = (allocation.serial, allocation.size);
    let exports = std::mem::take(&mut allocation.exports);
    let freed = Box::new(hanging_on(world, who, Freed::new(pointer, serial, size), &exports));
    if let Some(allocation) = world.life_mut(who).and_then(|life| life.allocations.get_mut(&pointer)) {
        allocation.exports = exports;
    }
    Aim::Free { pointer, freed }
}

/// What hangs on an allocation: the handles that are not put, and the mappings that are open.
fn hanging_on(world: &World, who: ProcessId, mut freed: Freed, exports: &BTreeSet<super::exports::ExportId>) -> Freed {
    for export in exports.iter().filter_map(|id| world.exports.get(*id)) {
        if export.handles > 0 {
            freed.handles += export.handles;
            freed.got = Some(export.got);
            freed.fingerprint = Some(export.fingerprint());
        }
        for (process, pointer) in &export.holders {
            let mapped = world.life(*process).and_then(|life| life.mappings.get(pointer));
            let Some(opened) = mapped.and_then(Mapped::last_open) else { continue };
            freed.holders += 1;
            let better = freed.holder.is_none_or(|(held, _)| held.process == who && opened.process != who);
            if better {
                freed.holder = Some((opened, *pointer));
                freed.fingerprint = Some(export.fingerprint());
            }
        }
    }
    freed
}

/// A reference to a context is taken or released. Contexts that were not seen being created are not counted.
fn refer(world: &mut World, who: ProcessId, context: Option<u64>, more: bool) -> Aim {
    let life = world.life_mut(who);
    let Some((context, counted)) = life.zip(context).and_then(|(life, context)| {
        let counted = life.contexts.get_mut(&context)?;
        Some((context, counted))
    }) else {
        return Aim::Nothing;
    };
    counted.references = if more { counted.references + 1 } else { counted.references.saturating_sub(1) };
    let (serial, last) = (counted.serial, !more && counted.references == 0);
    if more { Aim::Retain { context, serial } } else { Aim::Release { context, serial, last } }
}

/// A call returns.
pub(super) fn exit(world: &mut World, who: ProcessId, exit: &Exit) -> Option<Outcome> {
    let pending = world.life_mut(who)?.pending.remove(&exit.call);
    let Exit { function, call, tid, time, result, values } = *exit;
    // Where the enter is missing, what is born is known at least, so that its end is no surprise.
    let (place, aim) = match (pending, function.effect()) {
        (Some(pending), _) => (pending.place, pending.aim),
        (None, effect) => {
            let place = Place { process: who, tid, time, call: Some(call), function: Some(function) };
            let aim = match effect {
                Effect::Makes(Kind::MemHandle) => Aim::Get { pointer: None, allocation: None },
                Effect::Makes(Kind::Mapping) => Aim::Open { context: None, fingerprint: None, export: None },
                Effect::Makes(Kind::Usm) => Aim::Allocate { size: None },
                _ => Aim::Nothing,
            };
            (place, aim)
        }
    };
    let success = result.is_success();
    let given = |value: Option<u64>| value.filter(|value| success && *value != 0);
    match aim {
        Aim::Get { pointer, allocation } => {
            if let Some(data) = given(values.data) {
                got(world, place, pointer, allocation, data, values.fingerprint);
            }
        }
        Aim::Open { context, fingerprint, export } => {
            if let Some(pointer) = given(values.pointer) {
                opened(world, place, pointer, context, fingerprint, export);
            }
        }
        Aim::Allocate { size } => {
            if let Some(pointer) = given(values.pointer) {
                allocated(world, who, pointer, size, Some(place));
            }
        }
        Aim::Put { data, serial } => has_put(world, place, data, serial, success),
        Aim::Close { pointer, serial, taken, accuse } => {
            closed(world, place, pointer, serial, taken, success, accuse);
        }
        Aim::Free { pointer, freed } => {
            let life = world.life_mut(who)?;
            let same = life.allocations.get_mut(&pointer).filter(|allocation| allocation.serial == freed.serial);
            match (same, success) {
                (Some(allocation), false) => allocation.dying = false,
                (Some(_), true) => forget_allocation(world, who, pointer),
                (None, _) => {}
            }
            if success && freed.holders + freed.handles > 0 {
                return Some(Outcome::Freed(place, freed));
            }
        }
        Aim::Retain { context, serial } => {
            let counted = world.life_mut(who)?.contexts.get_mut(&context);
            if let Some(counted) = counted.filter(|counted| !success && counted.serial == serial) {
                counted.references = counted.references.saturating_sub(1);
            }
        }
        Aim::Release { context, serial, last } => return released(world, place, context, serial, last, success),
        Aim::Nothing => {
            if let (Effect::Makes(Kind::Context), Some(context)) = (function.effect(), given(values.context)) {
                let serial = world.next_serial();
                world.life_mut(who)?.contexts.insert(context, ContextLife { serial, references: 1 });
            }
        }
    }
    None
}

fn got(
    world: &mut World,
    born: Place,
    pointer: Option<u64>,
    allocation: Option<Serial>,
    data: u64,
    fingerprint: Option<u64>,
) {
    let who = born.process;
    let known = |world: &World| {
        let (base, found) = world.life(who)?.allocation_at(pointer?)?;
        Some((base, found.serial, found.size))
    };
    let found = match (allocation, pointer) {
        (None, Some(stranger)) if known(world).is_none() => {
            allocated(world, who, stranger, None, None);
            known(world)
        }
        _ => known(world).filter(|(_, serial, _)| allocation.is_none_or(|aimed| aimed == *serial)),
    };
    let size = found.and_then(|(base, _, size)| size?.checked_sub(pointer? - base));
    let allocation = allocation.or(found.map(|(_, serial, _)| serial));
    let host = world.process(who).map_or(0, |process| process.host);
    let export = fingerprint.map(|bytes| world.exports.export((host, bytes), allocation, size, born));
    let serial = world.next_serial();
    let World { lives, exports, .. } = world;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    if let (Some((base, ..)), Some(export)) = (found, export)
        && let Some(allocation) = life.allocations.get_mut(&base)
        && allocation.exports.insert(export)
        && allocation.exports.len() >= MANY_EXPORTS
        && allocation.exports.len().is_power_of_two()
    {
        allocation.exports.retain(|id| exports.get(*id).is_some());
    }
    life.graves.forget(Handle { kind: Kind::MemHandle, value: data });
    let new = Got { serial, state: State::Alive, born, pointer, size, fingerprint, export, allocation };
    // Whatever was there has ended where we do not see.
    if let Some(Got { state: State::Alive, export: Some(export), .. }) = life.handles.insert(data, new) {
        exports.put(export);
    }
}

fn has_put(world: &mut World, died: Place, data: u64, serial: Serial, success: bool) {
    let World { lives, exports, .. } = world;
    let Some(life) = lives.get_mut(died.process.0 as usize) else { return };
    let Some(got) = life.handles.get_mut(&data).filter(|got| got.serial == serial) else { return };
    let next = step(got.state, if success { Event::Ended } else { Event::Refused }).next;
    let before = std::mem::replace(&mut got.state, next);
    match (before, next, got.export) {
        (State::Dying, State::Alive, Some(export)) => exports.put_refused(export),
        (State::Alive, State::Dead, Some(export)) => exports.put(export),
        _ => {}
    }
    if next == State::Dead {
        let Got { born, size, fingerprint, .. } = *got;
        life.handles.remove(&data);
        let grave = Grave { born, died, size, fingerprint, excused: false };
        life.graves.bury(Handle { kind: Kind::MemHandle, value: data }, grave);
    }
}

fn opened(
    world: &mut World,
    born: Place,
    pointer: u64,
    context: Option<u64>,
    fingerprint: Option<u64>,
    export: Option<super::exports::ExportId>,
) {
    let serial = world.next_serial();
    let World { lives, exports, .. } = world;
    let who = born.process;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    life.graves.forget(Handle { kind: Kind::Mapping, value: pointer });
    // One pointer is one mapping as long as a close may still be refused: its reference is then still there.
    let mapped = life.mappings.entry(pointer).or_insert_with(|| Mapped::new(serial));
    mapped.state = step(mapped.state, Event::Birth).next;
    mapped.add(context, born);
    mapped.opened += 1;
    mapped.fingerprint = fingerprint.or(mapped.fingerprint);
    if let Some(source) = export.and_then(|id| exports.get(id)) {
        mapped.size = source.size.or(mapped.size);
        mapped.source = Some(source.got);
    }
    if let Some(new) = export {
        if let Some(old) = mapped.export.replace(new).filter(|old| *old != new) {
            exports.release(old, who, pointer);
        }
        exports.hold(new, who, pointer);
    }
}

fn closed(
    world: &mut World,
    died: Place,
    pointer: u64,
    serial: Serial,
    taken: (Option<u64>, Place),
    success: bool,
    accuse: bool,
) {
    let World { lives, exports, .. } = world;
    let who = died.process;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    let Some(mapped) = life.mappings.get_mut(&pointer).filter(|mapped| mapped.serial == serial) else { return };
    mapped.closing -= 1;
    if !success {
        mapped.state = step(mapped.state, Event::Refused).next;
        mapped.add(taken.0, taken.1);
        mapped.closed -= 1;
        mapped.accused |= accuse;
        if let Some(export) = mapped.export {
            exports.hold(export, who, pointer);
        }
    } else if mapped.opens.is_empty() && mapped.closing == 0 {
        let (size, fingerprint) = (mapped.size, mapped.fingerprint);
        life.mappings.remove(&pointer);
        let grave = Grave { born: taken.1, died, size, fingerprint, excused: false };
        life.graves.bury(Handle { kind: Kind::Mapping, value: pointer }, grave);
    }
}

/// New memory: what was known at these addresses before is no more.
fn allocated(world: &mut World, who: ProcessId, pointer: u64, size: Option<u64>, born: Option<Place>) {
    let serial = world.next_serial();
    let Some(life) = world.life(who) else { return };
    let end = pointer.saturating_add(size.unwrap_or(0).max(1));
    let mut gone: Vec<u64> = life.allocations.range(pointer..end).map(|(base, _)| *base).collect();
    gone.extend(life.allocation_at(pointer).map(|(base, _)| base).filter(|base| *base != pointer));
    for base in gone {
        forget_allocation(world, who, base);
    }
    let Some(life) = world.life_mut(who) else { return };
    life.allocated.insert(serial);
    let exports = BTreeSet::new();
    life.allocations.insert(pointer, Allocation { serial, size, born, dying: false, exports });
}

fn forget_allocation(world: &mut World, who: ProcessId, base: u64) {
    let Some(life) = world.life_mut(who) else { return };
    let Some(allocation) = life.allocations.remove(&base) else { return };
    life.allocated.remove(&allocation.serial);
    for export in allocation.exports {
        world.exports.retire(export);
    }
}

fn released(world: &mut World, at: Place, context: u64, serial: Serial, last: bool, success: bool) -> Option<Outcome> {
    let World { lives, exports, .. } = world;
    let life = lives.get_mut(at.process.0 as usize)?;
    let counted = life.contexts.get_mut(&context).filter(|counted| counted.serial == serial);
    if !success {
        if let Some(counted) = counted {
            counted.references += 1;
        }
        return None;
    }
    match counted {
        _ if !last => return None,
        Some(counted) if counted.references > 0 => return None,
        Some(_) => {
            life.contexts.remove(&context);
        }
        // The context's address was reborn before the release returned.
        None => {}
    }
    let mut left = Vec::new();
    for (pointer, mapped) in &mut life.mappings {
        // What was opened after the release began belongs to the reborn context.
        let ends = |opens: &super::records::Opens| opens.context == Some(context) && opens.place.call < at.call;
        if mapped.state != State::Alive || !mapped.opens.iter().any(ends) {
            continue;
        }
        let mut gone = mapped.clone();
        gone.opens.retain(ends);
        mapped.opens.retain(|opens| !ends(opens));
        if mapped.opens.is_empty() {
            mapped.state = State::Dead;
        }
        left.push((*pointer, gone));
    }
    for (pointer, mapped) in &left {
        if life.mappings.get(pointer).is_some_and(|mapped| mapped.state == State::Dead) {
            life.mappings.remove(pointer);
            if let Some(export) = mapped.export {
                exports.release(export, at.process, *pointer);
            }
            let (size, fingerprint) = (mapped.size, mapped.fingerprint);
            let born = mapped.last_open().unwrap_or(at);
            let grave = Grave { born, died: at, size, fingerprint, excused: true };
            life.graves.bury(Handle { kind: Kind::Mapping, value: *pointer }, grave);
        }
    }
    left.retain(|(_, mapped)| !mapped.accused);
    left.sort_by_key(|(_, mapped)| mapped.serial);
    Some(Outcome::Released(at, left))
}

/// A process is over: nothing is open in it, nothing more comes from it.
pub(super) fn bury(world: &mut World, who: ProcessId) {
    let World { lives, exports, .. } = world;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    for (pointer, mapped) in &life.mappings {
        if let Some(export) = mapped.export {
            exports.release(export, who, *pointer);
        }
    }
    for export in life.allocations.values().flat_map(|allocation| &allocation.exports) {
        exports.retire(*export);
    }
    let process = life.process.clone();
    *life = Life { over: true, ..Life::new(process, Inherited::Nothing) };
}
