//! Contexts: counted references, and what is left in a context whose last one is released.

use urscope_schema::handle::{Handle, Kind};

use super::{Outcome, objects};
use crate::{
    finding::Place,
    lifecycle::State,
    tracker::{
        ProcessId, Tracker,
        exports::Exports,
        process_state::{Operation, ProcessState},
        records::{HandleData, Mapping, Object, Opens, Origin, Serial, Tombstone},
    },
};

/// What was left in a context, in the order in which it was made.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    pub(crate) handles: Vec<(Handle, HandleData)>,
    pub(crate) mappings: Vec<(u64, Mapping)>,
    pub(crate) objects: Vec<(Handle, Object)>,
}

/// A reference to a context is taken or released. Contexts that were not seen being created are not counted.
pub(super) fn refer(tracker: &mut Tracker, who: ProcessId, context: Option<u64>, more: bool) -> Operation {
    let life = tracker.life_mut(who);
    let Some((context, counted)) = life.zip(context).and_then(|(life, context)| {
        let counted = life.contexts.get_mut(&context)?;
        Some((context, counted))
    }) else {
        return Operation::Nothing;
    };
    counted.references = if more { counted.references + 1 } else { counted.references.saturating_sub(1) };
    let (serial, last) = (counted.serial, !more && counted.references == 0);
    if more { Operation::Retain { context, serial } } else { Operation::Release { context, serial, last } }
}

pub(super) fn released(
    tracker: &mut Tracker,
    at: Place,
    context: u64,
    serial: Serial,
    last: bool,
    success: bool,
) -> Option<Outcome> {
    let Tracker { lives, exports, .. } = tracker;
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
    // What was made after the release began belongs to the reborn context.
    let inside = |context_of: Option<u64>, born: Place| context_of == Some(context) && born.call < at.call;
    let mut leftovers = Leftovers {
        handles: handles(life, exports, at, inside),
        mappings: mappings(life, exports, at, inside),
        objects: opened_objects(life, at, inside),
    };
    leftovers.handles.retain(|(_, got)| !got.accused);
    leftovers.mappings.retain(|(_, mapped)| !mapped.accused);
    leftovers.objects.retain(|(_, object)| !object.accused);
    Some(Outcome::Released(at, Box::new(leftovers)))
}

/// Ends the handle data of a context. A late put of it is no new violation.
fn handles(
    life: &mut ProcessState,
    exports: &mut Exports,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(Handle, HandleData)> {
    let ends = |(_, got): &(&Handle, &HandleData)| got.state == State::Alive && inside(got.context, got.born);
    let mut left: Vec<_> = life.handles.iter().filter(ends).map(|(handle, got)| (*handle, got.clone())).collect();
    left.sort_by_key(|(_, got)| got.serial);
    for (handle, got) in &left {
        life.handles.remove(handle);
        if let Some(export) = got.export {
            exports.put(export, None);
        }
        let HandleData { born, size, fingerprint, .. } = *got;
        life.tombstones.bury(*handle, Tombstone { born, died: at, size, fingerprint, excused: true });
    }
    left.retain(|(handle, got)| life.must_put(*handle, got));
    left
}

/// Ends the mappings of a context. A late close of one is no new violation.
fn mappings(
    life: &mut ProcessState,
    exports: &mut Exports,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(u64, Mapping)> {
    let ends = |opens: &Opens| inside(opens.context, opens.place);
    let mut left = Vec::new();
    for (pointer, mapped) in &mut life.mappings {
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
            let tombstone = Tombstone { born, died: at, size, fingerprint, excused: true };
            life.tombstones.bury(Handle { kind: Kind::Mapping, value: *pointer }, tombstone);
        }
    }
    left.sort_by_key(|(_, mapped)| mapped.serial);
    left
}

/// Ends what was opened in a context. A late release of it is no new violation.
fn opened_objects(
    life: &mut ProcessState,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(Handle, Object)> {
    let ends = |(_, object): &(&Handle, &Object)| {
        object.origin == Origin::Imported && object.state == State::Alive && inside(object.context, object.born)
    };
    let mut left: Vec<_> = life.objects.iter().filter(ends).map(|(handle, object)| (*handle, *object)).collect();
    left.sort_by_key(|(_, object)| object.serial);
    for (handle, object) in &left {
        objects::bury(life, *handle, object, at, true);
    }
    left
}
