//! Contexts: counted references, and what is left in a context whose last one is released.

use urscope_schema::{
    call::Values,
    handle::{Handle, Kind},
};

use super::objects;
use crate::{
    finding::Place,
    lifecycle::State,
    tracker::{
        ProcessId, Tracker,
        exports::Exports,
        fact::{FactConsumer, Reason},
        leaving::{Leftovers, is_excused},
        pending::Operation,
        process_state::ProcessState,
        records::{Context, HandleData, Mapping, Object, Open, Origin, Serial, Tombstone},
    },
};

/// The only device that the call to create a context names.
pub(super) fn only_device(values: &Values) -> Option<u64> {
    values.device.filter(|_| values.count == Some(1))
}

pub(super) fn created(tracker: &mut Tracker, born: Place, context: u64, device: Option<u64>) {
    let serial = tracker.next_serial();
    if let Some(state) = tracker.state_mut(born.process) {
        state.contexts.insert(context, Context { serial, references: 1, born, device });
    }
}

/// A reference to a context is taken or released. Contexts that were not seen being created are not counted.
pub(super) fn refer(tracker: &mut Tracker, who: ProcessId, context: Option<u64>, more: bool) -> Operation {
    let state = tracker.state_mut(who);
    let Some((context, counted)) = state.zip(context).and_then(|(state, context)| {
        let counted = state.contexts.get_mut(&context)?;
        Some((context, counted))
    }) else {
        return Operation::Nothing;
    };
    counted.references = if more { counted.references + 1 } else { counted.references.saturating_sub(1) };
    let (serial, last) = (counted.serial, !more && counted.references == 0);
    if more {
        Operation::RetainContext { context, serial }
    } else {
        Operation::ReleaseContext { context, serial, last }
    }
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, context: u64, serial: Serial, success: bool) {
    let counted = tracker.state_mut(who).and_then(|state| state.contexts.get_mut(&context));
    if let Some(counted) = counted.filter(|counted| !success && counted.serial == serial) {
        counted.references = counted.references.saturating_sub(1);
    }
}

pub(super) fn released(
    tracker: &mut Tracker,
    at: Place,
    (context, serial): (u64, Serial),
    last: bool,
    success: bool,
    facts: &mut dyn FactConsumer,
) {
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(at.process.0 as usize) else { return };
    let counted = state.contexts.get_mut(&context).filter(|counted| counted.serial == serial);
    if !success {
        if let Some(counted) = counted {
            counted.references += 1;
        }
        return;
    }
    match counted {
        _ if !last => return,
        Some(counted) if counted.references > 0 => return,
        Some(_) => {
            state.contexts.remove(&context);
        }
        // The context's address was used again before the release returned.
        None => {}
    }
    // What was made after the release began belongs to the new context.
    let inside = |context_of: Option<u64>, born: Place| context_of == Some(context) && born.call < at.call;
    let handles = handles(state, exports, at, inside);
    let mappings = mappings(state, exports, at, inside);
    let objects = opened_objects(state, at, inside);
    let left = Leftovers {
        handles: handles.iter().map(|(handle, data, excused)| (*handle, data, *excused)).collect(),
        mappings: mappings.iter().map(|(pointer, mapping)| (*pointer, mapping)).collect(),
        objects: objects.iter().map(|(handle, object)| (*handle, object)).collect(),
    };
    tracker.facts_of_left(at, Reason::ContextReleased, left, facts);
}

/// Ends the handle data of a context. A late put of it is no new violation.
fn handles(
    state: &mut ProcessState,
    exports: &mut Exports,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(Handle, HandleData, bool)> {
    let ends = |(_, data): &(&Handle, &HandleData)| data.state == State::Alive && inside(data.context, data.born);
    let left = state.handles.iter().filter(ends);
    let mut left: Vec<_> =
        left.map(|(handle, data)| (*handle, data.clone(), is_excused(state, *handle, data))).collect();
    left.sort_unstable_by_key(|(_, data, _)| data.serial);
    for (handle, data, _) in &left {
        state.handles.remove(handle);
        if let Some(export) = data.export {
            exports.put(export, None);
        }
        let HandleData { born, size, fingerprint, .. } = *data;
        state.tombstones.add(*handle, Tombstone { born, died: at, size, fingerprint, excused: true });
    }
    left
}

/// Ends the mappings of a context. A late close of one is no new violation.
fn mappings(
    state: &mut ProcessState,
    exports: &mut Exports,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(u64, Mapping)> {
    let ends = |open: &Open| inside(open.context, open.place);
    let mut left = Vec::new();
    for (pointer, mapping) in state.mappings.iter_mut() {
        if mapping.state != State::Alive || !mapping.opens.iter().any(ends) {
            continue;
        }
        let mut gone = mapping.clone();
        gone.opens.retain(|open| ends(open));
        mapping.opens.retain(|open| !ends(open));
        if mapping.opens.is_empty() {
            mapping.state = State::Dead;
        }
        left.push((pointer, gone));
    }
    left.sort_unstable_by_key(|(_, mapping)| mapping.serial);
    for (pointer, mapping) in &left {
        if state.mappings.get(*pointer).is_some_and(|mapping| mapping.state == State::Dead) {
            state.mappings.remove(*pointer);
            if let Some(export) = mapping.export {
                exports.release(export, at.process, *pointer);
            }
            let (size, fingerprint) = (mapping.size, mapping.fingerprint);
            let born = mapping.last_open().unwrap_or(at);
            let tombstone = Tombstone { born, died: at, size, fingerprint, excused: true };
            state.tombstones.add(Handle { kind: Kind::Mapping, value: *pointer }, tombstone);
        }
    }
    left
}

/// Ends what was opened in a context. A late release of it is no new violation.
fn opened_objects(
    state: &mut ProcessState,
    at: Place,
    inside: impl Fn(Option<u64>, Place) -> bool,
) -> Vec<(Handle, Object)> {
    let ends = |(_, object): &(&Handle, &Object)| {
        object.origin == Origin::Imported && object.state == State::Alive && inside(object.context, object.born)
    };
    let mut left: Vec<_> = state.objects.iter().filter(ends).map(|(handle, object)| (*handle, *object)).collect();
    left.sort_unstable_by_key(|(_, object)| object.serial);
    for (handle, object) in &left {
        objects::remove(state, *handle, object, at, true);
    }
    left
}
