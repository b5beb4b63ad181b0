//! Contexts: counted references. The objects in a context store that the application has released the last one.

use urscope_schema::api::Promise;
use urscope_schema::handle::{Handle, Kind};

use super::{mappings, memory};
use crate::place::{Place, ProcessId};
use crate::tracker::changes::{Change, Changes};
use crate::tracker::freeing::{Freed, Freeing};
use crate::tracker::pending::{Ends, PendingChange, Releasing};
use crate::tracker::records::{Allocation, Context, Life, Serial, Tombstone};
use crate::tracker::state::Tracker;

pub(super) fn created(tracker: &mut Tracker, born: Place, context: u64, device: Option<u64>, is_primary: bool) {
    let serial = tracker.next_serial();
    if let Some(state) = tracker.state_mut(born.process) {
        state.tombstones.forget(Handle { kind: Kind::Context, value: context });
        state.contexts.insert(context, Context { serial, references: 1, born, device, is_primary });
    }
}

/// A reference to the context that a device has in the process was taken. The first one creates it.
pub(super) fn retained_primary(tracker: &mut Tracker, born: Place, context: Option<u64>, device: u64) {
    let Some(context) = context else { return };
    match known(tracker, born.process, Some(context)).filter(|(_, known)| known.is_primary) {
        Some((_, counted)) => counted.references += 1,
        None => created(tracker, born, context, Some(device), true),
    }
}

/// The context that a device has in the process.
pub(super) fn primary(tracker: &Tracker, who: ProcessId, device: u64) -> Option<u64> {
    let mut contexts = tracker.state(who)?.contexts.iter();
    contexts.find(|(_, context)| context.is_primary && context.device == Some(device)).map(|(handle, _)| *handle)
}

/// A reference is taken. Contexts whose creation was not recorded are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, context: Option<u64>) -> PendingChange {
    let Some((context, counted)) = known(tracker, who, context) else { return PendingChange::Nothing };
    counted.references += 1;
    PendingChange::Retain(life(context, counted.serial))
}

/// A reference is released. For the last one, collects the memory in the context that others depend on, or that ends.
pub(super) fn release(tracker: &mut Tracker, at: Place, context: Option<u64>, how: Releasing) -> PendingChange {
    let Some((context, counted)) = known(tracker, at.process, context) else { return PendingChange::Nothing };
    if how == Releasing::Reference {
        counted.references = counted.references.saturating_sub(1);
    }
    let serial = counted.serial;
    let is_last = counted.references == 0 || how == Releasing::Contents;
    let ends = match at.promises(Promise::ContextsOwnMemory) {
        _ if !is_last => None,
        true => Some(Ends { frees: memory::free_all(tracker, at, Freeing::Context(context)), ..Ends::default() }),
        false => Some(Ends { shared: shared(tracker, at, context), ..Ends::default() }),
    };
    PendingChange::ReleaseContext { context: life(context, serial), how, ends }
}

fn life(context: u64, serial: Serial) -> Life {
    Life { handle: Handle { kind: Kind::Context, value: context }, serial }
}

fn known(tracker: &mut Tracker, who: ProcessId, context: Option<u64>) -> Option<(u64, &mut Context)> {
    let context = context?;
    Some((context, tracker.state_mut(who)?.contexts.get_mut(&context)?))
}

/// The memory in a context that other processes have open.
fn shared(tracker: &Tracker, at: Place, context: u64) -> Vec<Freed> {
    let Some(state) = tracker.state(at.process) else { return Vec::new() };
    let inside = state.allocations.iter().filter(|(_, memory)| memory.requested.context == Some(context));
    let is_exported = |memory: &Allocation| !memory.exports.is_empty() || !memory.by_children.is_empty();
    let freed = inside.filter(|(_, memory)| !memory.dying && is_exported(memory));
    let freed = freed.filter_map(|(pointer, _)| memory::dependent_on(tracker, at, pointer, Freeing::Call));
    freed
        .filter(|freed| freed.holders.iter().any(|holder| holder.is_certain && holder.opened.process != at.process))
        .collect()
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, context: Life, success: bool) {
    if let Some((_, counted)) = known(tracker, who, Some(context.handle.value))
        && counted.serial == context.serial
        && !success
    {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A release has returned. After the last one the adapter may keep the context, for its queues for
/// example, so its objects do not end here: each stores that the application has released its context.
pub(super) fn released(
    tracker: &mut Tracker,
    at: Place,
    released: Life,
    how: Releasing,
    ends: Option<&mut Ends>,
    success: bool,
) -> Changes {
    let Life { handle: Handle { value: context, .. }, serial } = released;
    let is_last = ends.is_some();
    let mut none = Ends::default();
    let Ends { shared, frees } = ends.unwrap_or(&mut none);
    let frees: Changes = frees.iter_mut().map(|free| memory::freed(tracker, at, free, success)).collect();
    let Some(state) = tracker.state_mut(at.process) else { return frees };
    let counted = state.contexts.get_mut(&context).filter(|counted| counted.serial == serial);
    if !success {
        if let Some(counted) = counted.filter(|_| how == Releasing::Reference) {
            counted.references += 1;
        }
        return frees;
    }
    if !is_last {
        return frees;
    }
    // The context's address may have been used again before the release returned.
    if let Some(Context { references: 0, born, .. }) = counted.copied() {
        state.contexts.remove(&context);
        let gone = Tombstone { born, died: at, size: None, fingerprint: None, excused: false };
        state.tombstones.add(Handle { kind: Kind::Context, value: context }, gone);
    }
    // Objects that were made after the release began belong to the new context.
    let inside = |context_of: Option<u64>, born: Place| context_of == Some(context) && born.call < at.call;
    for data in state.handles.values_mut().filter(|data| inside(data.context, data.born)) {
        data.context_released.get_or_insert(at);
    }
    for open in state.mappings.values_mut().flat_map(|mapping| &mut mapping.opens) {
        if inside(open.context, open.place) {
            open.context_released.get_or_insert(at);
        }
    }
    for object in state.objects.values_mut().filter(|object| inside(object.context, object.born)) {
        object.context_released.get_or_insert(at);
    }
    if at.promises(Promise::ContextsOwnMemory) {
        mappings::end_with_context(tracker, at);
    }
    let shared = shared.drain(..).map(|freed| Change::ContextReleased(Box::new(freed)));
    frees.into_iter().chain(shared).collect()
}
