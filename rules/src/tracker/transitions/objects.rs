//! Physical memory, events and event pools: born at the exit of the call that made or opened them, gone at the enter of their last
//! release.

use urscope_schema::{
    api::{Function, constants::ze::EXTERNAL_MEMORY_EXPORT_DESC},
    call::Enter,
    handle::{Handle, Kind},
};

use super::{end_wrongly, virtual_memory};
use crate::{
    finding::Place,
    lifecycle::{Event, State, step},
    tracker::{
        ProcessId, Tracker,
        fact::{FactConsumer, Freed, Opened, StillMapped, What},
        kept::KeptPlace,
        pending::{Opens, Operation},
        process_state::ProcessState,
        records::{Object, Origin, Serial, Tombstone},
        seldom::Seldom,
    },
};

/// How many events without the IPC flag are remembered.
const PLAIN_EVENTS: usize = 1024;

/// Physical memory, an event or an event pool is to be created.
pub(super) fn create(kind: Kind, enter: &Enter) -> Operation {
    let (function, values) = (enter.function, &enter.values);
    let is_exportable = function.is_level_zero() && values.property == Some(EXTERNAL_MEMORY_EXPORT_DESC);
    let shared = is_exportable || values.flags.is_some_and(|flags| flags & function.ipc_flag() != 0);
    let origin = if shared { Origin::Shareable } else { Origin::Plain };
    Operation::Create { kind, origin, context: values.context, size: values.size }
}

/// An object of `size` bytes has been made in a context. Returns which life of its handle it is.
pub(super) fn made(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    origin: Origin,
    (context, size): (Option<u64>, Option<u64>),
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
        ended_wrongly: false,
    };
    let Seldom { objects, plain_events, .. } = state.seldom.made();
    objects.insert(handle, new);
    if handle.kind == Kind::Event && origin == Origin::Plain {
        plain_events.push_back((handle, serial));
        if plain_events.len() > PLAIN_EVENTS
            && let Some((oldest, serial)) = plain_events.pop_front()
            && objects.get(oldest).is_some_and(|object| object.serial == serial)
        {
            objects.remove(oldest);
        }
    }
    serial
}

/// An open has returned physical memory or an event.
pub(super) fn imported(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    open: &Opens,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    let Opens { context, fingerprint, export, .. } = *open;
    let from = export.and_then(|id| tracker.exports.get(id));
    let (source, size) = from.map_or((None, None), |from| (Some(from.got()), from.subject.size.get()));
    let serial = made(tracker, born, handle, Origin::Imported, (context, size));
    if let Some(object) = known(tracker, born.process, handle) {
        (object.fingerprint, object.source) = (fingerprint, source);
    }
    tracker.emit(facts, born, What::Opened(Opened { handle, serial, export, fingerprint }));
}

fn known(tracker: &mut Tracker, who: ProcessId, object: Handle) -> Option<&mut Object> {
    tracker.state_mut(who)?.seldom.object_mut(object)
}

/// A reference is taken. Objects that were not seen being made are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, kind: Kind, value: Option<u64>) -> Operation {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return Operation::Nothing };
    let Some(counted) = known(tracker, who, object) else { return Operation::Nothing };
    counted.references += 1;
    Operation::Retain { object, serial: counted.serial }
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, object: Handle, serial: Serial, success: bool) {
    if let Some(counted) = known(tracker, who, object).filter(|counted| !success && counted.serial == serial) {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A reference is given back; the object dies with the last.
pub(super) fn release(tracker: &mut Tracker, who: ProcessId, kind: Kind, value: Option<u64>) -> Operation {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return Operation::Nothing };
    let Some(counted) = known(tracker, who, object).filter(|counted| counted.references > 0) else {
        if !tracker.state(who).is_some_and(|state| state.seldom.objects.contains(object)) {
            end_wrongly(tracker, who, kind, object.value);
        }
        return Operation::Nothing;
    };
    counted.references -= 1;
    if counted.references == 0 {
        counted.state = step(counted.state, Event::Ending).next;
    }
    let (serial, ends) = (counted.serial, counted.references == 0 && counted.origin != Origin::Plain);
    let state = tracker.state(who).filter(|_| ends);
    let mapped = state.and_then(|state| virtual_memory::still_mapped(state, serial)).map(Box::new);
    Operation::Release { object, serial, mapped }
}

/// A release has returned.
pub(super) fn released(
    tracker: &mut Tracker,
    died: Place,
    (object, serial): (Handle, Serial),
    mapped: Option<Box<StillMapped>>,
    success: bool,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    if !success {
        if let Some(counted) = known(tracker, died.process, object).filter(|counted| counted.serial == serial) {
            counted.references += 1;
            counted.state = step(counted.state, Event::Refused).next;
        }
        super::refused(tracker, died, object, facts);
        return;
    }
    let Some(state) = tracker.state_mut(died.process) else { return };
    let Some(gone) = state.seldom.objects.get(object).copied().filter(|counted| counted.serial == serial) else {
        return;
    };
    if gone.references > 0 {
        return;
    }
    remove(state, object, &gone, died, false);
    if let Some(seldom) = state.seldom.known() {
        seldom.mapped.forget(serial);
    }
    end_handles(tracker, died, object, serial);
    let Some(state) = tracker.state(died.process) else { return };
    let (handles, mapped) = (gone.handles, mapped.map(|mapped| *mapped));
    let not_put = (handles > 0).then(|| state.latest_got(|data| data.exported == Some(serial))).flatten();
    let got = not_put.or(gone.got);
    let freed = Freed { handles, got, mapped, ..Freed::new(object, serial, gone.size) };
    tracker.emit(facts, died, What::Freed(&freed));
}

/// The handles of an event of Level Zero end with it, as those of memory do: nothing puts them.
fn end_handles(tracker: &mut Tracker, died: Place, object: Handle, serial: Serial) {
    if object.kind != Kind::Event || !is_level_zero(died) {
        return;
    }
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(died.process.0 as usize) else { return };
    let handles =
        state.handles.iter().filter(|(handle, data)| handle.kind == Kind::EventHandle && data.exported == Some(serial));
    let handles: Vec<Handle> = handles.map(|(handle, _)| handle).collect();
    for handle in handles {
        if let Some(export) = state.handles.remove(handle).and_then(|data| data.export) {
            exports.free(export, died);
        }
    }
}

fn is_level_zero(at: Place) -> bool {
    at.function.is_some_and(Function::is_level_zero)
}

/// An object is no more. An event's address may be used again by one that is not recorded; in Level Zero, a call about such a one is not
/// recorded either, unless it is a close.
pub(super) fn remove(state: &mut ProcessState, handle: Handle, object: &Object, died: Place, excused: bool) {
    if let Some(seldom) = state.seldom.known() {
        seldom.objects.remove(handle);
    }
    if handle.kind != Kind::Event || is_level_zero(died) {
        let Object { born, size, fingerprint, .. } = *object;
        state.tombstones.add(
            handle,
            Tombstone { born: KeptPlace::of(born), died: KeptPlace::of(died), size, fingerprint, excused },
        );
    }
}
