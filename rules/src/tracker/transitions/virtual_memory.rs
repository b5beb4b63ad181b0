//! Addresses that physical memory is mapped at: added at the exit of a map, removed at the enter of an unmap.

use urscope_schema::{
    api::Function,
    call::{Enter, Values},
    handle::{Handle, Kind},
};

use crate::{
    place::{Place, ProcessId},
    tracker::{
        freeing::StillMapped,
        mapped::MappedRanges,
        pending::Operation,
        process_state::ProcessState,
        records::{MappedRange, Serial},
        state::Tracker,
    },
};

/// A call begins that maps or unmaps.
pub(super) fn begin(tracker: &mut Tracker, at: Place, enter: &Enter) -> Operation {
    match enter.function {
        Function::urVirtualMemMap | Function::zeVirtualMemMap => map(tracker, at, &enter.values),
        Function::urVirtualMemUnmap | Function::zeVirtualMemUnmap => unmap(tracker, at.process, &enter.values),
        _ => Operation::Nothing,
    }
}

/// Physical memory whose creation or open was not recorded is ignored.
fn map(tracker: &Tracker, at: Place, values: &Values) -> Operation {
    let Values { pointer, size, object, .. } = *values;
    let memory = object.map(|value| Handle { kind: Kind::PhysicalMem, value });
    let known = memory.and_then(|memory| Some((memory, tracker.state(at.process)?.objects.get(&memory)?.serial)));
    let (Some((memory, serial)), Some(start), Some(size)) = (known, pointer, size) else { return Operation::Nothing };
    Operation::Map(start, MappedRange { end: start.saturating_add(size), memory, serial, place: at })
}

fn unmap(tracker: &mut Tracker, who: ProcessId, values: &Values) -> Operation {
    let range = values.pointer.zip(values.size);
    let (Some(state), Some((start, size))) = (tracker.state_mut(who), range) else { return Operation::Nothing };
    let ranges = state.mapped.take(start, start.saturating_add(size));
    if ranges.is_empty() { Operation::Nothing } else { Operation::Unmap(ranges) }
}

pub(super) fn mapped(tracker: &mut Tracker, who: ProcessId, start: u64, range: MappedRange) {
    if let Some(state) = tracker.state_mut(who) {
        insert(state, start, range);
    }
}

pub(super) fn unmap_refused(tracker: &mut Tracker, who: ProcessId, ranges: Vec<(u64, MappedRange)>) {
    let Some(state) = tracker.state_mut(who) else { return };
    for (start, range) in ranges {
        insert(state, start, range);
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
    let (pointer, first) = state.mapped.of(memory).min_by_key(|(_, range)| (range.place.time, range.place.call))?;
    let others = state.mapped.of(memory).count() as u64 - 1;
    Some(StillMapped { mapped: first.place, pointer, size: first.end - pointer, others })
}

/// Adds a range, if its physical memory is alive.
fn insert(state: &mut ProcessState, start: u64, range: MappedRange) {
    if state.objects.get(&range.memory).is_some_and(|memory| memory.serial == range.serial) {
        state.mapped.insert(start, range);
    }
}
