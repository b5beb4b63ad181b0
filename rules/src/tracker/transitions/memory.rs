//! USM: its allocation, if that was recorded, and what depends on it when it is freed.

use smallvec::SmallVec;
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{self, Requested};

use super::{end_wrongly, mappings};
use crate::place::{Place, ProcessId};
use crate::tracker::freeing::{Freed, Freeing, OpenMapping};
use crate::tracker::pending::{Free, PendingChange};
use crate::tracker::records::{Allocation, ExportId, Object, Origin, Serial};
use crate::tracker::{changes::Change, exports::Exports, process::Process, state::Tracker};

/// How many freed allocations a process remembers. A get of older memory is a get of something unknown.
const MAX_FREED: usize = 1024;

/// A free begins: collects what depends on the memory. The free of imported memory closes it.
pub(super) fn free(tracker: &mut Tracker, at: Place, free: &operation::Free) -> PendingChange {
    let Some(pointer) = free.pointer else { return PendingChange::Nothing };
    if tracker.state(at.process).is_some_and(|state| state.is_imported(pointer)) {
        return mappings::close(tracker, at, pointer, free.context);
    }
    match free_of_own(tracker, at, pointer, freeing(tracker, at.process, free)) {
        Some(free) => PendingChange::Free(free),
        None => free_of_other(tracker, at.process, pointer),
    }
}

/// The free of an allocation of this process; `None` if there is none at that address.
pub(super) fn free_of_own(tracker: &mut Tracker, at: Place, pointer: u64, how: Freeing) -> Option<Free> {
    let allocation =
        tracker.state_mut(at.process)?.allocations.get_mut(pointer).filter(|allocation| !allocation.dying)?;
    allocation.dying = true;
    let serial = allocation.serial;
    let freed = dependent_on(tracker, at, pointer, how)?;
    let dependent = (!freed.holders.is_empty() || freed.handles > 0).then(|| Box::new(freed));
    Some(Free { pointer, serial, how, dependent })
}

/// The frees of all memory of a pool or a context.
pub(super) fn free_all(tracker: &mut Tracker, at: Place, how: Freeing) -> Vec<Free> {
    let is_of_it = |requested: &Requested| match how {
        Freeing::Pool(pool) => requested.pool == Some(pool),
        Freeing::Context(context) => requested.context == Some(context),
        Freeing::Call | Freeing::Enqueued { .. } => false,
    };
    let Some(state) = tracker.state(at.process) else { return Vec::new() };
    let inside = state.allocations.iter().filter(|(_, memory)| !memory.dying && is_of_it(&memory.requested));
    let inside: Vec<u64> = inside.map(|(pointer, _)| pointer).collect();
    inside.into_iter().filter_map(|pointer| free_of_own(tracker, at, pointer, how)).collect()
}

/// How a call frees. A command of a queue may wait for another process.
fn freeing(tracker: &Tracker, who: ProcessId, free: &operation::Free) -> Freeing {
    if !free.enqueued {
        return Freeing::Call;
    }
    let is_shared = |(handle, object): (&Handle, &Object)| handle.kind == Kind::Event && object.origin != Origin::Plain;
    let shares = || tracker.state(who).is_some_and(|state| state.objects.iter().any(is_shared));
    Freeing::Enqueued { waits: free.waits || shares() }
}

/// A free of an address that is not USM of this process.
fn free_of_other(tracker: &mut Tracker, who: ProcessId, pointer: u64) -> PendingChange {
    let Some(state) = tracker.state_mut(who) else { return PendingChange::Nothing };
    let base = state.mapping_around(pointer).map_or(pointer, |(base, _)| base);
    if let Some(mapping) = state.mappings.get_mut(base) {
        mapping.ended_wrongly = true;
        return PendingChange::Nothing;
    }
    let dangling = state.dangling(pointer).filter(|dangling| dangling.was.kind == Kind::Mapping);
    end_wrongly(tracker, who, Kind::Usm, pointer);
    dangling.map_or(PendingChange::Nothing, |dangling| PendingChange::FreeDangling(Box::new(dangling)))
}

/// What depends on an allocation: the handles that are not put, and the mappings that are open.
pub(super) fn dependent_on(tracker: &Tracker, at: Place, pointer: u64, how: Freeing) -> Option<Freed> {
    let allocation = tracker.state(at.process)?.allocations.get(pointer)?;
    let what = Handle { kind: Kind::Usm, value: pointer };
    let mut freed = Freed { how, ..Freed::new(what, allocation.serial, allocation.requested.size) };
    let ids = allocation.exports.iter().chain(&allocation.by_children);
    for (id, export) in ids.filter_map(|id| Some((id, tracker.exports.get(*id)?))) {
        // Handle data that its children got is put by them.
        if export.handles > 0 && export.latest_get.process == at.process {
            freed.handles += export.handles;
            // The latest of them may have been put.
            let state = tracker.state(at.process).filter(|_| export.handles < export.gets);
            freed.got =
                state.and_then(|state| state.latest_get(|data| data.export == Some(*id))).or(Some(export.latest_get));
            freed.fingerprint = Some(export.fingerprint());
        }
        freed.holders.extend(export.holders.iter().filter_map(|(process, pointer)| {
            let state = tracker.state(*process)?;
            let mapping = state.mappings.get(*pointer)?;
            let kept = mapping.opens.iter().filter(|open| open.context_released.is_none());
            let certain = kept.map(|open| open.place).max_by_key(|place| (place.time, place.call));
            let is_there = state.is_there(at.time);
            let is_certain = certain.is_some() && is_there == Some(true);
            if is_there == Some(false) {
                return None;
            }
            Some(OpenMapping { opened: certain.or(mapping.first_open())?, pointer: *pointer, is_certain })
        }));
        if freed.fingerprint.is_none() && !freed.holders.is_empty() {
            freed.fingerprint = Some(export.fingerprint());
        }
    }
    freed.holders.sort_by_key(|holder| (!holder.is_certain, holder.opened.process == at.process));
    Some(freed)
}

/// A forked child has got handle data of memory that it may share with the process that it is a copy
/// of: a free there affects what other processes have open.
pub(super) fn exported_by_child(tracker: &mut Tracker, child: ProcessId, pointer: u64, export: ExportId) {
    let Some((owner, base)) = inherited_from(tracker, child, pointer) else { return };
    let allocation = tracker.state_mut(owner).and_then(|state| state.allocations.get_mut(base));
    if let Some(allocation) = allocation {
        allocation.add_export_of_child(export);
    }
}

/// The process that allocated an address, and the start of that allocation, if it was alive when the
/// ancestor of `child` was forked, and still is. If the child knows the address from anything but an
/// argument, it has memory of its own there.
fn inherited_from(tracker: &Tracker, child: ProcessId, pointer: u64) -> Option<(ProcessId, u64)> {
    let mut who = child;
    loop {
        let Process { forked_from, started, .. } = *tracker.process(who)?;
        let parent = forked_from?;
        let started = started?;
        if let Some((base, memory)) = tracker.state(parent)?.allocation_at(pointer)
            && let Some(born) = memory.born
        {
            return (born.time < started).then_some((parent, base));
        }
        who = parent;
    }
}

/// New memory: replaces what was known at these addresses.
pub(super) fn allocated(
    tracker: &mut Tracker,
    who: ProcessId,
    pointer: u64,
    requested: Requested,
    born: Option<Place>,
) {
    let serial = tracker.next_serial();
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(who.0 as usize) else { return };
    state.tombstones.forget(Handle { kind: Kind::Mapping, value: pointer });
    mappings::replace(state, exports, who, pointer, requested.size, |_| true);
    let end = pointer.saturating_add(requested.size.unwrap_or(0).max(1));
    let inside = state.allocations.range(pointer..end.max(pointer)).map(|(base, _)| base);
    let around = state.allocation_at(pointer).map(|(base, _)| base).filter(|base| *base != pointer);
    let gone: SmallVec<[u64; 2]> = inside.chain(around).collect();
    for base in gone {
        if let Some(memory) = state.allocations.get_mut(base) {
            retire(exports, memory);
        }
        // What begins where the new memory does is replaced below.
        if base != pointer {
            state.allocations.remove(base);
        }
    }
    let exports = SmallVec::new();
    let by_children = Vec::new();
    let new = Allocation {
        serial,
        requested,
        born,
        dying: false,
        freed: None,
        freed_exported: false,
        handles: 0,
        exports,
        by_children,
    };
    state.allocations.insert(pointer, new);
}

/// Retires the exports of memory that has ended.
fn retire(exports: &mut Exports, memory: &mut Allocation) {
    for export in std::mem::take(&mut memory.exports) {
        exports.retire(export);
    }
}

/// A free has returned. The number of freed allocations that are remembered is bounded.
pub(super) fn freed(tracker: &mut Tracker, freed: Place, free: &mut Free, success: bool) -> Change {
    let base = free.pointer;
    let serial = free.serial;
    let how = free.how;
    let dependent = free.dependent.take();
    let what = Handle { kind: Kind::Usm, value: base };
    let opened_meanwhile =
        if success { opened_meanwhile(tracker, freed, base, serial, how, dependent.as_deref()) } else { None };
    let Tracker { states, exports, .. } = tracker;
    let state = states.get_mut(freed.process.0 as usize);
    let mut size = None;
    if let Some(state) = state
        && let Some(allocation) = state.allocations.get_mut(base).filter(|allocation| allocation.serial == serial)
    {
        size = allocation.requested.size;
        // After a success it stays dying, so that it does not count as alive.
        allocation.dying = success;
        if success {
            allocation.freed = Some(freed);
            allocation.freed_exported = allocation.is_exported();
            for export in std::mem::take(&mut allocation.exports) {
                exports.free(export, freed);
            }
            // The copy of a child may live on, so its exports have not expired.
            allocation.by_children = Vec::new();
            state.freed.push_back((base, serial));
            if state.freed.len() > MAX_FREED
                && let Some((base, serial)) = state.freed.pop_front()
                && state.allocations.get(base).is_some_and(|oldest| oldest.serial == serial)
            {
                state.allocations.remove(base);
            }
        }
    }
    if !success {
        return Change::EndRefused(what);
    }
    match opened_meanwhile.map(Box::new).or(dependent) {
        Some(dependent) => Change::FreedWith(dependent),
        None => Change::Freed(how, what, serial, size),
    }
}

/// What depended on memory when its free began, with the mappings that were opened while it was under
/// way; `None` if there are none.
fn opened_meanwhile(
    tracker: &Tracker,
    freed: Place,
    base: u64,
    serial: Serial,
    how: Freeing,
    dependent: Option<&Freed>,
) -> Option<Freed> {
    let now = dependent_on(tracker, freed, base, how).filter(|now| now.serial == serial)?;
    let known = |new: &OpenMapping| {
        let same = |old: &OpenMapping| (old.opened.process, old.pointer) == (new.opened.process, new.pointer);
        dependent.is_some_and(|dependent| dependent.holders.iter().any(same))
    };
    let new: Vec<_> = now.holders.iter().copied().filter(|holder| !known(holder)).collect();
    let mut all = dependent.cloned().unwrap_or(Freed { holders: Vec::new(), ..now });
    all.holders.extend(new.iter().copied());
    (!new.is_empty()).then_some(all)
}
