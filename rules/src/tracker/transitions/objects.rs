//! Physical memory, events and event pools: born at the exit of the call that made or opened them, dead
//! at the enter of their last release.

use urscope_schema::api::{Effect, Promise};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::Open;

use super::{end_wrongly, virtual_memory};
use crate::lifecycle::{Event, State, step};
use crate::place::{Place, ProcessId};
use crate::tracker::changes::{Change, Opened};
use crate::tracker::freeing::{Freed, OpenMapping, StillMapped};
use crate::tracker::pending::PendingChange;
use crate::tracker::records::{ExportId, Life, Object, Origin, Serial, Tombstone};
use crate::tracker::{process_state::ProcessState, state::Tracker};

/// How many events without the IPC flag are remembered.
const MAX_PLAIN_EVENTS: usize = 1024;

/// An object of `size` bytes has been made in a context. Returns which life of its handle it is.
pub(super) fn made(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    origin: Origin,
    context: Option<u64>,
    size: Option<u64>,
) -> Serial {
    let serial = tracker.next_serial();
    let Some(state) = tracker.state_mut(born.process) else { return serial };
    state.tombstones.forget(handle);
    let new = Object {
        serial,
        state: State::Alive,
        references: 1,
        born,
        origin,
        context,
        context_released: None,
        size,
        handles: 0,
        got: None,
        fingerprint: None,
        source: None,
        export: None,
        ended_wrongly: false,
    };
    state.objects.insert(handle, new);
    if handle.kind == Kind::Event && origin == Origin::Plain {
        state.plain_events.push_back((handle, serial));
        if state.plain_events.len() > MAX_PLAIN_EVENTS
            && let Some((oldest, serial)) = state.plain_events.pop_front()
            && state.objects.get(&oldest).is_some_and(|object| object.serial == serial)
        {
            state.objects.remove(&oldest);
        }
    }
    serial
}

/// An open has returned physical memory or an event.
pub(super) fn imported(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    open: &Open,
    export: Option<ExportId>,
) -> Change {
    let Open { context, fingerprint, .. } = *open;
    let from = export.and_then(|id| tracker.exports.get(id));
    let (source, size) = from.map_or((None, None), |from| (Some(from.latest_get), from.subject.size));
    let serial = made(tracker, born, handle, Origin::Imported, context, size);
    if let Some(object) = tracker.object_mut(born.process, handle) {
        (object.fingerprint, object.source, object.export) = (fingerprint, source, export);
    }
    if let Some(export) = export.filter(|_| handle.kind == Kind::Event) {
        tracker.exports.opened(export, born);
    }
    if let Some(export) = export.filter(|_| ends_its_handles(born, handle.kind)) {
        tracker.exports.hold(export, born.process, handle.value);
    }
    Change::Opened(Opened { handle, serial, export, fingerprint })
}

/// A reference is taken. Objects whose creation was not recorded are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, kind: Kind, value: Option<u64>) -> PendingChange {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return PendingChange::Nothing };
    let Some(counted) = tracker.object_mut(who, object) else { return PendingChange::Nothing };
    counted.references += 1;
    PendingChange::Retain(Life { handle: object, serial: counted.serial })
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, object: Life, success: bool) {
    let counted = tracker.object_mut(who, object.handle);
    if let Some(counted) = counted.filter(|counted| !success && counted.serial == object.serial) {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A call has returned an object with a reference to it. It may have been released before, and be there still.
pub(super) fn retained_or_made(tracker: &mut Tracker, born: Place, kind: Kind, value: Option<u64>) {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return };
    if let Some(counted) = tracker.object_mut(born.process, object) {
        counted.references += 1;
        return;
    }
    let serial = made(tracker, born, object, Origin::Shareable, None, None);
    if let Some(state) = tracker.state_mut(born.process) {
        live_on(state, object, serial);
    }
}

/// Physical memory that was released and is still mapped has a reference again: its mappings and descriptors are those
/// of the new life.
fn live_on(state: &mut ProcessState, memory: Handle, serial: Serial) {
    let Some(before) = state.mapped.iter().find(|(_, range)| range.memory == memory).map(|(_, range)| range.serial)
    else {
        return;
    };
    state.mapped.live_on(before, serial);
    for descriptor in state.descriptors.values_mut().filter(|descriptor| descriptor.serial == Some(before)) {
        (descriptor.serial, descriptor.released) = (Some(serial), None);
    }
}

/// A reference is released; the object dies with the last.
pub(super) fn release(tracker: &mut Tracker, who: ProcessId, kind: Kind, value: Option<u64>) -> PendingChange {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return PendingChange::Nothing };
    let Some(counted) = tracker.object_mut(who, object).filter(|counted| counted.references > 0) else {
        if !tracker.state(who).is_some_and(|state| state.objects.contains_key(&object)) {
            end_wrongly(tracker, who, kind, object.value);
        }
        return PendingChange::Nothing;
    };
    counted.references -= 1;
    if counted.references == 0 {
        counted.state = step(counted.state, Event::Ending).next;
    }
    let serial = counted.serial;
    let ends = counted.references == 0 && counted.origin != Origin::Plain;
    let state = tracker.state(who).filter(|_| ends);
    let mapped = state.and_then(|state| virtual_memory::still_mapped(state, serial)).map(Box::new);
    PendingChange::Release { object: Life { handle: object, serial }, mapped }
}

/// A release has returned.
pub(super) fn released(
    tracker: &mut Tracker,
    died: Place,
    released: Life,
    mapped: Option<Box<StillMapped>>,
    success: bool,
) -> Option<Change> {
    let Life { handle: object, serial } = released;
    let counted = tracker.object_mut(died.process, object).filter(|counted| counted.serial == serial);
    if !success {
        if let Some(counted) = counted {
            counted.references += 1;
            counted.state = step(counted.state, Event::Refused).next;
        }
        return Some(Change::EndRefused(object));
    }
    let gone = *counted.filter(|counted| counted.references == 0)?;
    let holders = holders(tracker, died, object.kind, &gone);
    if let (Origin::Imported, Some(export)) = (gone.origin, gone.export) {
        tracker.exports.release(export, died.process, object.value);
    }
    let state = tracker.state_mut(died.process)?;
    remove(state, object, &gone, died, false);
    if !died.promises(Promise::MappingsHoldMemory) {
        state.mapped.forget(serial);
    }
    if object.kind == Kind::PhysicalMem {
        let of_it = state.descriptors.values_mut().filter(|descriptor| descriptor.serial == Some(serial));
        of_it.for_each(|descriptor| descriptor.released = Some(died));
    }
    end_handles(tracker, died, object, serial);
    let handles = gone.handles;
    let mapped = mapped.map(|mapped| *mapped);
    let state = tracker.state(died.process).filter(|_| handles > 0);
    let not_put = state.and_then(|state| state.latest_get(|data| data.exported == Some(serial)));
    let got = not_put.or(gone.got);
    let fingerprint = holders.first().and_then(|_| Some(tracker.exports.get(gone.export?)?.fingerprint()));
    let freed = Freed { fingerprint, handles, got, holders, mapped, ..Freed::new(object, serial, gone.size) };
    Some(Change::FreedWith(Box::new(freed)))
}

/// Where an object of this process is open when it has ended.
fn holders(tracker: &Tracker, died: Place, kind: Kind, gone: &Object) -> Vec<OpenMapping> {
    let is_own = gone.origin != Origin::Imported && ends_its_handles(died, kind);
    let export = gone.export.filter(|_| is_own).and_then(|id| tracker.exports.get(id));
    let holders = export.filter(|export| export.subject.serial == Some(gone.serial)).map(|export| &export.holders);
    let holder = |(process, pointer): &(ProcessId, u64)| {
        let state = tracker.state(*process)?;
        let opened = state.objects.get(&Handle { kind, value: *pointer }).filter(|it| it.state == State::Alive)?;
        let is_certain = state.is_there(died.time) == Some(true) && opened.context_released.is_none();
        Some(OpenMapping { opened: opened.born, pointer: *pointer, is_certain })
    };
    holders.into_iter().flatten().filter_map(holder).collect()
}

/// Where a put is optional, the handles of an event end with it, as those of memory do: nothing puts them.
fn ends_its_handles(at: Place, kind: Kind) -> bool {
    matches!(kind, Kind::Event | Kind::EventPool) && at.promises(Promise::PutIsOptional)
}

/// Ends the handles of an object that has ended. Those of an event pool may still be put, but not opened.
fn end_handles(tracker: &mut Tracker, died: Place, object: Handle, serial: Serial) {
    if !ends_its_handles(died, object.kind) {
        return;
    }
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    state.handles.retain(|data| {
        let is_of_it = data.exported == Some(serial);
        if let Some(export) = data.export.filter(|_| is_of_it) {
            exports.free(export, died);
        }
        !is_of_it || object.kind == Kind::EventPool
    });
}

/// An object has ended. A new event that is not recorded may use its address: only a destroy or a close of an event
/// is certain to be one of it, because commands hold references, too.
pub(super) fn remove(state: &mut ProcessState, handle: Handle, object: &Object, died: Place, excused: bool) {
    state.objects.remove(&handle);
    if handle.kind != Kind::Event || !matches!(died.effect(), Some(Effect::Releases(_))) {
        let Object { born, size, fingerprint, .. } = *object;
        state.tombstones.add(handle, Tombstone { born, died, size, fingerprint, excused });
    }
}
