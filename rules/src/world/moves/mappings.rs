//! Mappings: counted opens, taken away at the enter of a close.

use urscope_schema::handle::{Handle, Kind};

use super::accuse;
use crate::{
    finding::Place,
    life::{Event, step},
    world::{
        ProcessId, World,
        exports::ExportId,
        process::Aim,
        records::{Grave, Mapped, Serial},
        scene::OpenedHere,
    },
};

pub(super) fn close(world: &mut World, who: ProcessId, pointer: u64, context: Option<u64>) -> Aim {
    let Some(life) = world.life_mut(who) else { return Aim::Nothing };
    let buried = life.graves.get(Handle { kind: Kind::Mapping, value: pointer }).is_some();
    let around = if buried { None } else { life.mapping_around(pointer).map(|(base, _)| base) };
    let base = if life.mappings.contains_key(&pointer) { Some(pointer) } else { around };
    let Some((base, mapped)) = base.and_then(|base| Some((base, life.mappings.get_mut(&base)?))) else {
        accuse(world, who, Kind::Mapping, pointer);
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
        mapped.size = source.subject.size.or(mapped.size);
        mapped.source = Some(source.got);
        if source.got.process == who {
            let (got, size, fingerprint) = (source.got, source.subject.size, source.fingerprint());
            let first = OpenedHere { opened: born, pointer, got, size, fingerprint, count: 0 };
            life.opened_here.get_or_insert(first).count += 1;
        }
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
