//! Mappings and the contexts they are opened in: counted opens, taken away at the enter of a close.

use urscope_schema::handle::{Handle, Kind};

use super::Outcome;
use crate::{
    finding::Place,
    life::{Event, State, step},
    world::{
        ProcessId, World,
        exports::ExportId,
        process::Aim,
        records::{Grave, Mapped, Opens, Serial},
    },
};

pub(super) fn close(world: &mut World, who: ProcessId, pointer: u64, context: Option<u64>) -> Aim {
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

pub(super) fn opened(
    world: &mut World,
    born: Place,
    pointer: u64,
    context: Option<u64>,
    fingerprint: Option<u64>,
    export: Option<ExportId>,
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

pub(super) fn closed(
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

/// A reference to a context is taken or released. Contexts that were not seen being created are not counted.
pub(super) fn refer(world: &mut World, who: ProcessId, context: Option<u64>, more: bool) -> Aim {
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

pub(super) fn released(
    world: &mut World,
    at: Place,
    context: u64,
    serial: Serial,
    last: bool,
    success: bool,
) -> Option<Outcome> {
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
        let ends = |opens: &Opens| opens.context == Some(context) && opens.place.call < at.call;
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
