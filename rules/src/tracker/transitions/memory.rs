//! USM: what is allocated, what is first met as an argument, and what depends on it when it is freed.

use smallvec::SmallVec;
use urscope_schema::handle::{Handle, Kind};

use super::end_wrongly;
use crate::{
    finding::Place,
    tracker::{
        ProcessId, Tracker,
        fact::{FactConsumer, Freed, What},
        pending::Operation,
        records::{Allocation, Mapping, Serial},
    },
};

/// How many freed allocations a process remembers. A get of older memory is a get of something unknown.
const FREED: usize = 1024;

pub(super) fn free(tracker: &mut Tracker, who: ProcessId, pointer: u64) -> Operation {
    let Some(state) = tracker.state_mut(who) else { return Operation::Nothing };
    let Some(allocation) = state.allocations.get_mut(pointer).filter(|allocation| !allocation.dying) else {
        return free_of_other(tracker, who, pointer);
    };
    allocation.dying = true;
    let serial = allocation.serial;
    let Some(allocation) = tracker.state(who).and_then(|state| state.allocations.get(pointer)) else {
        return Operation::Nothing;
    };
    let freed = dependent_on(tracker, who, pointer, allocation);
    let dependent = (freed.holders + freed.handles > 0).then(|| Box::new(freed));
    Operation::Free { pointer, serial, dependent }
}

/// A free of what is no USM of this process.
fn free_of_other(tracker: &mut Tracker, who: ProcessId, pointer: u64) -> Operation {
    let Some(state) = tracker.state_mut(who) else { return Operation::Nothing };
    let base = state.mapping_around(pointer).map_or(pointer, |(base, _)| base);
    if let Some(mapping) = state.mappings.get_mut(base) {
        mapping.ended_wrongly = true;
        return Operation::Nothing;
    }
    let dangling = state.dangling(pointer).filter(|dangling| dangling.was.kind == Kind::Mapping);
    end_wrongly(tracker, who, Kind::Usm, pointer);
    dangling.map_or(Operation::Nothing, |dangling| Operation::FreeDangling(Box::new(dangling)))
}

/// What depends on an allocation: the handles that are not put, and the mappings that are open.
fn dependent_on(tracker: &Tracker, who: ProcessId, pointer: u64, allocation: &Allocation) -> Freed {
    let what = Handle { kind: Kind::Usm, value: pointer };
    let mut freed = Freed::new(what, allocation.serial, allocation.size);
    for export in allocation.exports.iter().filter_map(|id| tracker.exports.get(*id)) {
        if export.handles > 0 {
            freed.handles += export.handles;
            freed.got = Some(export.got);
            freed.fingerprint = Some(export.fingerprint());
        }
        for (process, pointer) in &export.holders {
            let mapping = tracker.state(*process).and_then(|state| state.mappings.get(*pointer));
            let Some(opened) = mapping.and_then(Mapping::last_open) else { continue };
            freed.holders += 1;
            let better = freed.holder.is_none_or(|(held, _)| held.process == who && opened.process != who);
            if better {
                freed.holder = Some((opened, *pointer));
                freed.fingerprint = Some(export.fingerprint());
            }
        }
    }
    freed
}

/// New memory: what was known at these addresses before is no more.
pub(super) fn allocated(
    tracker: &mut Tracker,
    who: ProcessId,
    pointer: u64,
    (size, device): (Option<u64>, Option<u64>),
    born: Option<Place>,
) {
    let serial = tracker.next_serial();
    let Some(state) = tracker.state(who) else { return };
    let end = pointer.saturating_add(size.unwrap_or(0).max(1));
    let mut gone: SmallVec<[u64; 2]> = state.allocations.within(pointer..end).map(|(base, _)| base).collect();
    gone.extend(state.allocation_at(pointer).map(|(base, _)| base).filter(|base| *base != pointer));
    for base in gone {
        forget_allocation(tracker, who, base);
    }
    let Some(state) = tracker.state_mut(who) else { return };
    let exports = SmallVec::new();
    state.allocations.insert(pointer, Allocation { serial, size, device, born, dying: false, freed: None, exports });
}

/// A free has returned: what is remembered of the memory is bounded.
pub(super) fn freed(
    tracker: &mut Tracker,
    freed: Place,
    (base, serial): (u64, Serial),
    dependent: Option<Box<Freed>>,
    success: bool,
    facts: &mut dyn FactConsumer,
) {
    let what = Handle { kind: Kind::Usm, value: base };
    let Tracker { states, exports, .. } = tracker;
    let Some(state) = states.get_mut(freed.process.0 as usize) else { return };
    let mut size = None;
    if let Some(allocation) = state.allocations.get_mut(base).filter(|allocation| allocation.serial == serial) {
        size = allocation.size;
        if success {
            // It stays dying, so that nothing takes it for alive.
            allocation.freed = Some(freed);
            for export in std::mem::take(&mut allocation.exports) {
                exports.free(export, freed);
            }
            state.freed.push_back((base, serial));
            if state.freed.len() > FREED
                && let Some((base, serial)) = state.freed.pop_front()
                && state.allocations.get(base).is_some_and(|oldest| oldest.serial == serial)
            {
                state.allocations.remove(base);
            }
        } else {
            allocation.dying = false;
        }
    }
    match (success, dependent) {
        (true, Some(dependent)) => tracker.emit(facts, freed, What::Freed(&dependent)),
        (true, None) => tracker.emit(facts, freed, What::Freed(&Freed::new(what, serial, size))),
        (false, _) => super::refused(tracker, freed, what, facts),
    }
}

fn forget_allocation(tracker: &mut Tracker, who: ProcessId, base: u64) {
    let Some(allocation) = tracker.state_mut(who).and_then(|state| state.allocations.remove(base)) else { return };
    for export in allocation.exports {
        tracker.exports.retire(export);
    }
}
