//! USM: what is allocated, what is first met as an argument, and what hangs on it when it is freed.

use std::collections::BTreeSet;

use urscope_schema::handle::{Handle, Kind};

use super::accuse;
use crate::{
    finding::Place,
    tracker::{
        ProcessId, Tracker,
        exports::ExportId,
        fact::Freed,
        process_state::Operation,
        records::{Allocation, Mapping},
    },
};

/// How many freed allocations a process remembers. A get of older memory is a get of something unknown.
const FREED: usize = 1024;

pub(super) fn free(tracker: &mut Tracker, who: ProcessId, pointer: u64) -> Operation {
    let Some(life) = tracker.life_mut(who) else { return Operation::Nothing };
    let Some(allocation) = life.allocations.get_mut(&pointer).filter(|allocation| !allocation.dying) else {
        let base = life.mapping_around(pointer).map_or(pointer, |(base, _)| base);
        if let Some(mapped) = life.mappings.get_mut(&base) {
            mapped.accused = true;
            return Operation::Nothing;
        }
        let dangling = life.dangling(pointer).filter(|dangling| dangling.was.kind == Kind::Mapping);
        accuse(tracker, who, Kind::Usm, pointer);
        return dangling.map_or(Operation::Nothing, |dangling| Operation::FreeDangling(Box::new(dangling)));
    };
    allocation.dying = true;
    let (serial, size) = (allocation.serial, allocation.size);
    let exports = std::mem::take(&mut allocation.exports);
    let freed = Box::new(hanging_on(
        tracker,
        who,
        Freed::new(Handle { kind: Kind::Usm, value: pointer }, serial, size),
        &exports,
    ));
    if let Some(allocation) = tracker.life_mut(who).and_then(|life| life.allocations.get_mut(&pointer)) {
        allocation.exports = exports;
    }
    Operation::Free { freed }
}

/// What hangs on an allocation: the handles that are not put, and the mappings that are open.
fn hanging_on(tracker: &Tracker, who: ProcessId, mut freed: Freed, exports: &BTreeSet<ExportId>) -> Freed {
    for export in exports.iter().filter_map(|id| tracker.exports.get(*id)) {
        if export.handles > 0 {
            freed.handles += export.handles;
            freed.got = Some(export.got);
            freed.fingerprint = Some(export.fingerprint());
        }
        for (process, pointer) in &export.holders {
            let mapped = tracker.life(*process).and_then(|life| life.mappings.get(pointer));
            let Some(opened) = mapped.and_then(Mapping::last_open) else { continue };
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
    let Some(life) = tracker.life(who) else { return };
    let end = pointer.saturating_add(size.unwrap_or(0).max(1));
    let mut gone: Vec<u64> = life.allocations.range(pointer..end).map(|(base, _)| *base).collect();
    gone.extend(life.allocation_at(pointer).map(|(base, _)| base).filter(|base| *base != pointer));
    for base in gone {
        forget_allocation(tracker, who, base);
    }
    let Some(life) = tracker.life_mut(who) else { return };
    life.allocated.insert(serial);
    let exports = BTreeSet::new();
    life.allocations.insert(pointer, Allocation { serial, size, device, born, dying: false, freed: None, exports });
}

/// Memory has been freed: what is remembered of it is bounded.
pub(super) fn freed(tracker: &mut Tracker, freed: Place, base: u64) {
    let Tracker { lives, exports, .. } = tracker;
    let Some(life) = lives.get_mut(freed.process.0 as usize) else { return };
    let Some(allocation) = life.allocations.get_mut(&base) else { return };
    let serial = allocation.serial;
    // It stays dying, so that nothing takes it for alive.
    allocation.freed = Some(freed);
    for export in std::mem::take(&mut allocation.exports) {
        exports.free(export, freed);
    }
    life.allocated.remove(&serial);
    life.freed.push_back((base, serial));
    if life.freed.len() > FREED
        && let Some((base, serial)) = life.freed.pop_front()
        && life.allocations.get(&base).is_some_and(|oldest| oldest.serial == serial)
    {
        life.allocations.remove(&base);
    }
}

pub(super) fn forget_allocation(tracker: &mut Tracker, who: ProcessId, base: u64) {
    let Some(life) = tracker.life_mut(who) else { return };
    let Some(allocation) = life.allocations.remove(&base) else { return };
    life.allocated.remove(&allocation.serial);
    for export in allocation.exports {
        tracker.exports.retire(export);
    }
}
