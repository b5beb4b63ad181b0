//! Mappings: counted opens, removed at the enter of a close.

use smallvec::SmallVec;
use urscope_schema::api::Effect;
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation;

use super::end_wrongly;
use crate::lifecycle::{Event, step};
use crate::place::{Place, ProcessId};
use crate::tracker::changes::{Change, Opened};
use crate::tracker::exports::Exports;
use crate::tracker::pending::{Close, PendingChange, PendingOpen};
use crate::tracker::process_state::ProcessState;
use crate::tracker::records::{Counted, Life, Mapping, Open, Tombstone};
use crate::tracker::state::Tracker;

/// A close begins.
pub(super) fn close(tracker: &mut Tracker, at: Place, pointer: u64, context: Option<u64>) -> PendingChange {
    let who = at.process;
    let Some(state) = tracker.state(who) else { return PendingChange::Nothing };
    let exact = state.mappings.get(pointer).is_some();
    let ended = || state.tombstones.get(Handle { kind: Kind::Mapping, value: pointer }).is_some();
    let base = match exact {
        true => Some(pointer),
        false if ended() => None,
        false => state.mapping_around(pointer).map(|(base, _)| base),
    };
    let Tracker { states, exports, .. } = tracker;
    let state = states.get_mut(who.0 as usize);
    let found = state.zip(base).and_then(|(state, base)| Some((base, state.mappings.get_mut(base)?)));
    let Some((base, mapping)) = found else {
        end_wrongly(tracker, who, Kind::Mapping, pointer);
        return PendingChange::Nothing;
    };
    let frees = at.effect() != Some(Effect::Closes(Kind::Usm));
    let wrongly = base != pointer || !mapping.is_open_in(context, at) || mapping.imported != frees;
    let Some(open) = mapping.take(context, at.time) else { return PendingChange::Nothing };
    mapping.closed += 1;
    mapping.last_close = at.time;
    mapping.closing += 1;
    let serial = mapping.serial;
    let export = mapping.export;
    if mapping.opens.is_empty() {
        mapping.state = step(mapping.state, Event::Ending).next;
        if let Some(export) = export {
            exports.release(export, who, base);
        }
    }
    PendingChange::Close(Close { pointer: base, serial, open, wrongly })
}

/// An open has returned a mapping.
pub(super) fn opened(
    tracker: &mut Tracker,
    born: Place,
    pointer: u64,
    extent: Option<u64>,
    open: &operation::Open,
    pending: &PendingOpen,
) -> Change {
    let PendingOpen { export, got, .. } = *pending;
    let serial = tracker.next_serial();
    let of_mapping = tracker.next_serial();
    let operation::Open { fingerprint, context, imports, .. } = *open;
    let handle = Handle { kind: Kind::Mapping, value: pointer };
    let opened = Change::Opened(Opened { handle, serial, export, fingerprint });
    let Tracker { states, exports, .. } = tracker;
    let who = born.process;
    let Some(state) = states.get_mut(who.0 as usize) else { return opened };
    state.tombstones.forget(handle);
    if let Some(new) = export {
        let size = exports.get(new).and_then(|source| source.subject.size);
        // No two exports are mapped at one address.
        replace(state, exports, who, pointer, size, |old| old.export.is_some_and(|old| old != new));
    }
    // One pointer is one mapping as long as a close may still be refused: its reference is then still there.
    let mapping = state.mappings.get_or_insert_with(pointer, || Mapping::new(of_mapping));
    mapping.state = step(mapping.state, Event::Birth).next;
    // An allocation that imports memory at the address of one that is there is the same one: the first free ends it.
    let is_new = !imports || !mapping.imported || mapping.opens.is_empty() || mapping.went_with_context();
    if is_new {
        let latest_get = || exports.get(export?).map(|source| source.latest_get);
        let source = got.or_else(latest_get);
        mapping.opens.push(Open { serial, context, context_released: None, place: born, source });
        mapping.opened += 1;
        if mapping.opened == 2 {
            let opens = mapping.opens.iter().map(|open| open.place).collect();
            mapping.counted = Some(Box::new(Counted { opens, ..Counted::default() }));
        } else if let Some(counted) = mapping.counted.as_mut().filter(|counted| counted.opens.len() < Counted::LIMIT) {
            counted.opens.push(born);
        }
    }
    mapping.imported = imports;
    mapping.extent = extent.or(mapping.extent);
    mapping.fingerprint = fingerprint.or(mapping.fingerprint);
    if let Some(source) = export.and_then(|id| exports.get(id)) {
        mapping.size = source.subject.size.or(mapping.size);
    }
    if let Some(new) = export {
        if let Some(old) = mapping.export.replace(new).filter(|old| *old != new) {
            exports.release(old, who, pointer);
        }
        exports.hold(new, who, pointer);
    }
    opened
}

/// Something else is at some addresses: sets the mappings there aside that went with their contexts and are `wanted`.
pub(super) fn replace(
    state: &mut ProcessState,
    exports: &mut Exports,
    who: ProcessId,
    start: u64,
    size: Option<u64>,
    wanted: impl Fn(&Mapping) -> bool,
) {
    let end = start.saturating_add(size.unwrap_or(0).max(1));
    let there = state.mappings.range(start..end.max(start)).chain(state.mapping_around(start));
    let gone = there.filter(|(_, mapping)| mapping.went_with_context() && wanted(mapping)).map(|(base, _)| base);
    let gone: SmallVec<[u64; 2]> = gone.collect();
    for base in gone {
        let Some(mapping) = state.mappings.remove(base) else { continue };
        if let Some(export) = mapping.export {
            exports.release(export, who, base);
        }
        state.replaced.push((base, mapping));
    }
}

/// A close has returned.
pub(super) fn closed(tracker: &mut Tracker, died: Place, close: &Close, success: bool) -> Change {
    let Close { pointer, serial, open, wrongly } = *close;
    let handle = Handle { kind: Kind::Mapping, value: pointer };
    let ended = Life { handle, serial: open.serial };
    let change = if success { Change::Closed(ended) } else { Change::EndRefused(handle) };
    let Tracker { states, exports, .. } = tracker;
    let who = died.process;
    let Some(state) = states.get_mut(who.0 as usize) else { return change };
    let Some(mapping) = state.mappings.get_mut(pointer).filter(|mapping| mapping.serial == serial) else {
        return change;
    };
    mapping.closing -= 1;
    if let Some(counted) = mapping.counted.as_mut().filter(|it| success && it.closes.len() < Counted::LIMIT) {
        counted.closes.push(died);
    }
    if !success {
        mapping.state = step(mapping.state, Event::Refused).next;
        mapping.opens.push(open);
        mapping.closed -= 1;
        mapping.close_refused = Some(died);
        mapping.ended_wrongly |= wrongly;
        if let Some(export) = mapping.export {
            exports.hold(export, who, pointer);
        }
    } else if mapping.opens.is_empty() && mapping.closing == 0 {
        let size = mapping.size;
        let fingerprint = mapping.fingerprint;
        let counted = mapping.counted.take();
        state.mappings.remove(pointer);
        state.tombstones.keep_counted(handle, counted);
        state.tombstones.add(handle, Tombstone { born: open.place, died, size, fingerprint, excused: false });
    }
    change
}

/// A call has ended a context, with the mappings in it.
pub(super) fn end_with_context(tracker: &mut Tracker, died: Place) {
    let Tracker { states, exports, .. } = tracker;
    let who = died.process;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    let ended = |mapping: &Mapping| mapping.opens.iter().all(|open| open.context_released == Some(died));
    let gone: Vec<u64> = state.mappings.iter().filter(|(_, it)| it.closing == 0 && ended(it)).map(|it| it.0).collect();
    for pointer in gone {
        let Some(mapping) = state.mappings.remove(pointer) else { continue };
        if let Some(export) = mapping.export {
            exports.release(export, who, pointer);
        }
        let size = mapping.size;
        let fingerprint = mapping.fingerprint;
        if let Some(born) = mapping.first_open() {
            let handle = Handle { kind: Kind::Mapping, value: pointer };
            state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused: true });
        }
    }
}
