//! Addresses that physical memory is mapped at: added at the exit of a map, removed at the enter of an unmap. Those
//! that it was unmapped from are remembered until a map begins there.

use urscope_schema::handle::{Handle, Kind};

use crate::place::{Place, ProcessId};
use crate::tracker::records::{MappedRange, Object, Origin, Replaced, Serial};
use crate::tracker::{
    freeing::StillMapped, mapped::MappedRanges, pending::PendingChange, process_state::ProcessState, state::Tracker,
};

/// How many unmapped ranges of a process are remembered.
const MAX_UNMAPPED: usize = 1024;

/// A map begins. Physical memory whose creation or open was not recorded is ignored.
pub(super) fn map(tracker: &mut Tracker, at: Place, start: u64, size: u64, memory: u64) -> PendingChange {
    let memory = Handle { kind: Kind::PhysicalMem, value: memory };
    let Some(state) = tracker.state_mut(at.process) else { return PendingChange::Nothing };
    let end = start.saturating_add(size);
    let before = state.unmapped.take(start, end);
    let Some(known) = state.objects.get(&memory) else { return PendingChange::Nothing };
    let serial = known.serial;
    let imported = known.origin == Origin::Imported;
    let export = known.export.filter(|_| imported);
    let range = MappedRange { end, memory, serial, place: at, imported, export, first_access: None };
    PendingChange::Map(start, range, before)
}

/// An unmap begins.
pub(super) fn unmap(tracker: &mut Tracker, who: ProcessId, start: u64, size: u64) -> PendingChange {
    let Some(state) = tracker.state_mut(who) else { return PendingChange::Nothing };
    let ranges = state.mapped.take(start, start.saturating_add(size));
    if ranges.is_empty() { PendingChange::Nothing } else { PendingChange::Unmap(ranges) }
}

/// A map has returned. What was unmapped there before is no longer what its process has there, unless it is mapped
/// elsewhere.
pub(super) fn mapped(
    tracker: &mut Tracker,
    who: ProcessId,
    start: u64,
    range: MappedRange,
    before: &[(u64, MappedRange)],
) {
    let Some(state) = tracker.state_mut(who) else { return };
    insert(state, start, range);
    state.replaced_memory.remove(&range.serial);
    for (address, old) in before.iter().filter(|(_, old)| !old.imported && old.serial != range.serial) {
        if state.replaced_memory.len() >= MAX_UNMAPPED {
            state.replaced_memory.clear();
        }
        if state.mapped.ranges_of(old.serial).next().is_none() {
            let replaced = Replaced { address: *address, unmapped: old.place, mapped: range.place };
            state.replaced_memory.insert(old.serial, replaced);
        }
    }
}

/// An unmap of these ranges has returned.
pub(super) fn unmapped(tracker: &mut Tracker, at: Place, ranges: Vec<(u64, MappedRange)>, success: bool) {
    let Some(state) = tracker.state_mut(at.process) else { return };
    if !success {
        for (start, range) in ranges {
            insert(state, start, range);
        }
        return;
    }
    if state.unmapped.len() >= MAX_UNMAPPED {
        state.unmapped = MappedRanges::default();
    }
    for (start, range) in ranges {
        let memory = state.objects.get(&range.memory).filter(|memory| memory.serial == range.serial);
        if memory.is_some_and(Object::is_shared) {
            state.unmapped.insert(start, MappedRange { place: at, ..range });
        }
    }
}

/// Addresses that are not known have been unmapped: any of them may be.
pub(super) fn unmapped_somewhere(tracker: &mut Tracker, who: ProcessId) {
    if let Some(state) = tracker.state_mut(who) {
        state.mapped = MappedRanges::default();
    }
}

/// Where physical memory is mapped.
pub(super) fn still_mapped(state: &ProcessState, memory: Serial) -> Option<StillMapped> {
    let (pointer, first) =
        state.mapped.ranges_of(memory).min_by_key(|(_, range)| (range.place.time, range.place.call))?;
    let others = state.mapped.ranges_of(memory).count() as u64 - 1;
    Some(StillMapped { mapped: first.place, pointer, size: first.end - pointer, others })
}

/// Adds a range, if its physical memory is alive.
fn insert(state: &mut ProcessState, start: u64, range: MappedRange) {
    if state.objects.get(&range.memory).is_some_and(|memory| memory.serial == range.serial) {
        state.mapped.insert(start, range);
    }
}
