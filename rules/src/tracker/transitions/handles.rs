//! Handle data: got at the exit of a get, gone at the enter of its put.

use urscope_schema::handle::{Handle, Kind};

use super::memory::allocated;
use crate::{
    finding::Place,
    lifecycle::{Event, State, step},
    tracker::{
        ProcessId, Tracker,
        exports::Subject,
        process_state::{Operation, ProcessState},
        records::{HandleData, Serial, Tombstone},
    },
};

/// From so many exports of one allocation on, those are looked for that are forgotten already.
const MANY_EXPORTS: usize = 1024;

/// How many exports that were got and put over and over are remembered of a process.
const CHURNED: usize = 64;

/// A get begins: what it exports is known by now.
pub(super) fn get(
    tracker: &Tracker,
    who: ProcessId,
    kind: Kind,
    (pointer, object, context): (Option<u64>, Option<u64>, Option<u64>),
) -> Operation {
    let life = tracker.life(who);
    if kind == Kind::MemHandle {
        let found = pointer.and_then(|pointer| life?.allocation_at(pointer));
        let dangling = pointer.filter(|_| found.is_none()).and_then(|pointer| life?.dangling(pointer)).map(Box::new);
        return Operation::Get { kind, pointer, exported: found.map(|(_, found)| found.serial), context, dangling };
    }
    let found = kind.shares().zip(object).and_then(|(kind, value)| life?.objects.get(&Handle { kind, value }));
    let context = context.or(found.and_then(|found| found.context));
    Operation::Get { kind, pointer: object, exported: found.map(|found| found.serial), context, dangling: None }
}

pub(super) fn put(tracker: &mut Tracker, at: Place, handle: Handle) -> Operation {
    let who = at.process;
    let Some(got) = tracker.life_mut(who).and_then(|life| life.handles.get_mut(&handle)) else {
        super::accuse(tracker, who, handle.kind, handle.value);
        return Operation::Nothing;
    };
    let before = got.state;
    got.state = step(before, Event::Ending).next;
    let (serial, export, is_over) = (got.serial, got.export, before == State::Alive && !got.accused);
    if is_over {
        hang(tracker, who, handle, |handles| handles.saturating_sub(1));
    }
    if let Some(export) = export.filter(|_| is_over) {
        tracker.exports.put(export, Some(at));
        if handle.kind == Kind::PhysicalMemHandle {
            let now = tracker.next_serial();
            tracker.exports.close(export, Some((now, at)));
        }
    }
    Operation::Put { handle, serial }
}

/// It has been ended in a wrong way, which is told at that call: from here on nothing hangs on it.
pub(super) fn accuse(tracker: &mut Tracker, who: ProcessId, handle: Handle) {
    let Some(got) = tracker.life_mut(who).and_then(|life| life.handles.get_mut(&handle)) else { return };
    if std::mem::replace(&mut got.accused, true) {
        return;
    }
    let export = got.export;
    hang(tracker, who, handle, |handles| handles.saturating_sub(1));
    if let Some(export) = export {
        tracker.exports.put(export, None);
    }
}

/// Changes how much handle data hangs on the physical memory or event that a handle was got of.
fn hang(tracker: &mut Tracker, who: ProcessId, handle: Handle, change: impl FnOnce(u64) -> u64) {
    let Some(life) = tracker.life_mut(who).filter(|_| handle.kind != Kind::MemHandle) else { return };
    let ProcessState { handles, objects, .. } = life;
    let Some(got) = handles.get(&handle) else { return };
    let object = handle.kind.shares().zip(got.pointer).map(|(kind, value)| Handle { kind, value });
    let known = object.and_then(|object| objects.get_mut(&object));
    if let Some(known) = known.filter(|known| got.exported == Some(known.serial)) {
        known.handles = change(known.handles);
    }
}

pub(super) fn got(
    tracker: &mut Tracker,
    born: Place,
    (pointer, exported, context): (Option<u64>, Option<Serial>, Option<u64>),
    handle: Handle,
    (fingerprint, took): (Option<u64>, u64),
) {
    let who = born.process;
    let of_memory = handle.kind == Kind::MemHandle;
    let known = |tracker: &Tracker| {
        let (base, found) = tracker.life(who)?.allocation_at(pointer?)?;
        Some((base, found.serial, found.size))
    };
    let found = match (exported, pointer) {
        // Physical memory and events are known by their own handles.
        _ if !of_memory => None,
        (None, Some(stranger)) if known(tracker).is_none() => {
            allocated(tracker, who, stranger, (None, None), None);
            known(tracker)
        }
        _ => known(tracker).filter(|(_, serial, _)| exported.is_none_or(|aimed| aimed == *serial)),
    };
    let object = handle.kind.shares().zip(pointer).map(|(kind, value)| Handle { kind, value });
    let known = object.and_then(|object| tracker.life(who)?.objects.get(&object));
    let size = match known.filter(|known| exported == Some(known.serial)) {
        Some(known) => known.size,
        None => found.and_then(|(base, _, size)| size?.checked_sub(pointer? - base)),
    };
    let exported = exported.or(found.map(|(_, serial, _)| serial));
    let host = tracker.process(who).map_or(0, |process| process.host);
    let subject = Subject { kind: handle.kind, value: pointer, serial: exported, size };
    let export = fingerprint.map(|bytes| tracker.exports.export((host, bytes), subject, born, took));
    let (export, churned) = (export.map(|(id, _)| id), export.filter(|(_, churned)| *churned));
    let serial = tracker.next_serial();
    let Tracker { lives, exports, .. } = tracker;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    if let (Some((base, ..)), Some(export)) = (found, export)
        && let Some(allocation) = life.allocations.get_mut(&base)
        && allocation.exports.insert(export)
        && allocation.exports.len() >= MANY_EXPORTS
        && allocation.exports.len().is_power_of_two()
    {
        allocation.exports.retain(|id| exports.get(*id).is_some());
    }
    life.churned.extend(churned.map(|(id, _)| id).filter(|_| life.churned.len() < CHURNED));
    let known = object.and_then(|object| life.objects.get_mut(&object));
    if let Some(known) = known.filter(|known| exported == Some(known.serial)) {
        known.handles += 1;
        known.got = Some(born);
    }
    life.tombstones.forget(handle);
    let state = State::Alive;
    let new = HandleData { serial, state, born, pointer, size, fingerprint, export, exported, context, accused: false };
    // Whatever was there has ended where we do not see.
    if let Some(HandleData { state: State::Alive, export: Some(export), .. }) = life.handles.insert(handle, new) {
        exports.put(export, None);
    }
}

pub(super) fn has_put(
    tracker: &mut Tracker,
    died: Place,
    (handle, serial): (Handle, Serial),
    success: bool,
    took: u64,
) {
    let who = died.process;
    let Some(life) = tracker.life_mut(who) else { return };
    let Some(got) = life.handles.get_mut(&handle).filter(|got| got.serial == serial) else { return };
    let next = step(got.state, if success { Event::Ended } else { Event::Refused }).next;
    let before = std::mem::replace(&mut got.state, next);
    let HandleData { born, size, fingerprint, export, accused, .. } = *got;
    if let Some(export) = export {
        tracker.exports.spend(export, took);
    }
    match (before, next) {
        _ if accused => {}
        (State::Dying, State::Alive) => {
            hang(tracker, who, handle, |handles| handles + 1);
            export.inspect(|export| {
                tracker.exports.put_refused(*export);
                tracker.exports.close(*export, None);
            });
        }
        (State::Alive, State::Dead) => {
            hang(tracker, who, handle, |handles| handles.saturating_sub(1));
            export.inspect(|export| tracker.exports.put(*export, Some(died)));
        }
        _ => {}
    }
    if next == State::Dead
        && let Some(life) = tracker.life_mut(who)
    {
        life.handles.remove(&handle);
        let tombstone = Tombstone { born, died, size, fingerprint, excused: false };
        life.tombstones.bury(handle, tombstone);
    }
}
