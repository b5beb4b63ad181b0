//! Mappings: counted opens, taken away at the enter of a close.

use urscope_schema::handle::{Handle, Kind};

use super::accuse;
use crate::{
    finding::Place,
    lifecycle::{Event, step},
    tracker::{
        ProcessId, Tracker,
        exports::ExportId,
        fact::OpenedHere,
        process_state::Operation,
        records::{Mapping, Serial, Tombstone},
    },
};

pub(super) fn close(tracker: &mut Tracker, who: ProcessId, pointer: u64, context: Option<u64>) -> Operation {
    let Some(life) = tracker.life_mut(who) else { return Operation::Nothing };
    let buried = life.tombstones.get(Handle { kind: Kind::Mapping, value: pointer }).is_some();
    let around = if buried { None } else { life.mapping_around(pointer).map(|(base, _)| base) };
    let base = if life.mappings.contains_key(&pointer) { Some(pointer) } else { around };
    let Some((base, mapped)) = base.and_then(|base| Some((base, life.mappings.get_mut(&base)?))) else {
        accuse(tracker, who, Kind::Mapping, pointer);
        return Operation::Nothing;
    };
    let accuse = base != pointer || !mapped.is_open_in(context);
    let Some(taken) = mapped.take(context) else { return Operation::Nothing };
    mapped.closed += 1;
    mapped.closing += 1;
    let (serial, export, last) = (mapped.serial, mapped.export, mapped.opens.is_empty());
    if last {
        mapped.state = step(mapped.state, Event::Ending).next;
        if let Some(export) = export {
            tracker.exports.release(export, who, base);
        }
    }
    Operation::Close { pointer: base, serial, taken, accuse }
}

pub(super) fn opened(
    tracker: &mut Tracker,
    born: Place,
    pointer: u64,
    context: Option<u64>,
    fingerprint: Option<u64>,
    export: Option<ExportId>,
) {
    let serial = tracker.next_serial();
    let Tracker { lives, exports, .. } = tracker;
    let who = born.process;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    life.tombstones.forget(Handle { kind: Kind::Mapping, value: pointer });
    // One pointer is one mapping as long as a close may still be refused: its reference is then still there.
    let mapped = life.mappings.entry(pointer).or_insert_with(|| Mapping::new(serial));
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
    tracker: &mut Tracker,
    died: Place,
    pointer: u64,
    serial: Serial,
    taken: (Option<u64>, Place),
    success: bool,
    accuse: bool,
) {
    let Tracker { lives, exports, .. } = tracker;
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
        let tombstone = Tombstone { born: taken.1, died, size, fingerprint, excused: false };
        life.tombstones.bury(Handle { kind: Kind::Mapping, value: pointer }, tombstone);
    }
}
