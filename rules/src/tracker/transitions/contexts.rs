//! Contexts: counted references. The objects in a context store that the application has released the last one.

use urscope_schema::handle::{Handle, Kind};

use super::memory;
use crate::place::{Place, ProcessId};
use crate::tracker::changes::{Change, Changes};
use crate::tracker::freeing::{Freed, Freeing};
use crate::tracker::records::{Allocation, Context, Serial, Tombstone};
use crate::tracker::{pending::PendingChange, state::Tracker};

pub(super) fn created(tracker: &mut Tracker, born: Place, context: u64, device: Option<u64>) {
    let serial = tracker.next_serial();
    if let Some(state) = tracker.state_mut(born.process) {
        state.tombstones.forget(Handle { kind: Kind::Context, value: context });
        state.contexts.insert(context, Context { serial, references: 1, born, device });
    }
}

/// A reference is taken. Contexts whose creation was not recorded are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, context: Option<u64>) -> PendingChange {
    let Some((context, counted)) = known(tracker, who, context) else { return PendingChange::Nothing };
    counted.references += 1;
    PendingChange::RetainContext { context, serial: counted.serial }
}

/// A reference is released. For the last one, collects the memory in the context that others depend on.
pub(super) fn release(tracker: &mut Tracker, at: Place, context: Option<u64>) -> PendingChange {
    let Some((context, counted)) = known(tracker, at.process, context) else { return PendingChange::Nothing };
    counted.references = counted.references.saturating_sub(1);
    let (serial, is_last) = (counted.serial, counted.references == 0);
    let shared = is_last.then(|| shared(tracker, at, context));
    PendingChange::ReleaseContext { context, serial, shared }
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

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, context: u64, serial: Serial, success: bool) {
    if let Some((_, counted)) = known(tracker, who, Some(context))
        && counted.serial == serial
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
    (context, serial): (u64, Serial),
    shared: Option<Vec<Freed>>,
    success: bool,
) -> Changes {
    let Some(state) = tracker.state_mut(at.process) else { return Changes::new() };
    let counted = state.contexts.get_mut(&context).filter(|counted| counted.serial == serial);
    if !success {
        if let Some(counted) = counted {
            counted.references += 1;
        }
        return Changes::new();
    }
    let Some(shared) = shared else { return Changes::new() };
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
    shared.into_iter().map(|freed| Change::ContextReleased(Box::new(freed))).collect()
}
