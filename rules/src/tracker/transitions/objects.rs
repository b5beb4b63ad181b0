//! Physical memory and events: born at the exit of the call that made or opened them, gone at the enter of their last
//! release.

use urscope_schema::{
    api::demand::IPC,
    handle::{Handle, Kind},
};

use super::{Outcome, accuse};
use crate::{
    finding::Place,
    lifecycle::{Event, State, step},
    tracker::{
        ProcessId, Tracker,
        exports::ExportId,
        fact::Freed,
        process_state::{Operation, ProcessState},
        records::{Object, Origin, Serial, Tombstone},
    },
};

/// How many events without the IPC flag are remembered.
const PLAIN_EVENTS: usize = 1024;

/// What a call makes that was handed these flags.
pub(super) fn origin(flags: Option<u64>) -> Origin {
    if flags.is_some_and(|flags| flags & IPC != 0) { Origin::Shareable } else { Origin::Plain }
}

/// An object of `size` bytes has been made in a context.
pub(super) fn made(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    origin: Origin,
    (context, size): (Option<u64>, Option<u64>),
) {
    let serial = tracker.next_serial();
    let Some(life) = tracker.life_mut(born.process) else { return };
    life.tombstones.forget(handle);
    life.objects.insert(
        handle,
        Object {
            serial,
            state: State::Alive,
            references: 1,
            born,
            origin,
            context,
            size,
            handles: 0,
            got: None,
            fingerprint: None,
            source: None,
            accused: false,
        },
    );
    if handle.kind == Kind::Event && origin == Origin::Plain {
        life.plain_events.push_back((handle, serial));
        if life.plain_events.len() > PLAIN_EVENTS
            && let Some((oldest, serial)) = life.plain_events.pop_front()
            && life.objects.get(&oldest).is_some_and(|object| object.serial == serial)
        {
            life.objects.remove(&oldest);
        }
    }
}

/// An object has been opened from handle data.
pub(super) fn imported(
    tracker: &mut Tracker,
    born: Place,
    handle: Handle,
    context: Option<u64>,
    (fingerprint, export): (Option<u64>, Option<ExportId>),
) {
    let (source, size) =
        export.and_then(|id| tracker.exports.get(id)).map_or((None, None), |from| (Some(from.got), from.subject.size));
    made(tracker, born, handle, Origin::Imported, (context, size));
    if let Some(object) = known(tracker, born.process, handle) {
        (object.fingerprint, object.source) = (fingerprint, source);
    }
}

fn known(tracker: &mut Tracker, who: ProcessId, object: Handle) -> Option<&mut Object> {
    tracker.life_mut(who)?.objects.get_mut(&object)
}

/// A reference is taken. Objects that were not seen being made are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, kind: Kind, value: Option<u64>) -> Operation {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return Operation::Nothing };
    let Some(counted) = known(tracker, who, object) else { return Operation::Nothing };
    counted.references += 1;
    Operation::Refer { object, serial: counted.serial }
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
        if !tracker.life(who).is_some_and(|life| life.objects.contains_key(&object)) {
            accuse(tracker, who, kind, object.value);
        }
        return Operation::Nothing;
    };
    counted.references -= 1;
    if counted.references == 0 {
        counted.state = step(counted.state, Event::Ending).next;
    }
    Operation::Unrefer { object, serial: counted.serial }
}

/// A reference has been given back; says what hung on the object, if it was the last one.
pub(super) fn unreferred(
    tracker: &mut Tracker,
    died: Place,
    object: Handle,
    serial: Serial,
    success: bool,
) -> Option<Outcome> {
    let counted = known(tracker, died.process, object).filter(|counted| counted.serial == serial)?;
    if !success {
        counted.references += 1;
        counted.state = step(counted.state, Event::Refused).next;
        return None;
    }
    if counted.references > 0 {
        return None;
    }
    let (handles, got) = (counted.handles, counted.got);
    let freed = Freed { handles, got, ..Freed::new(object, serial, counted.size) };
    let gone = *counted;
    bury(tracker.life_mut(died.process)?, object, &gone, died, false);
    (handles > 0).then(|| Outcome::Freed(died, Box::new(freed)))
}

/// An object is no more. An event's address may be used again by one that is not recorded.
pub(super) fn bury(life: &mut ProcessState, handle: Handle, object: &Object, died: Place, excused: bool) {
    life.objects.remove(&handle);
    if handle.kind == Kind::PhysicalMem {
        let tombstone =
            Tombstone { born: object.born, died, size: object.size, fingerprint: object.fingerprint, excused };
        life.tombstones.bury(handle, tombstone);
    }
}
