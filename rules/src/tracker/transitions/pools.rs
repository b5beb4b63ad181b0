//! USM pools: counted references. The last release frees all memory of the pool.

use super::memory;
use crate::{
    finding::Place,
    tracker::{
        ProcessId, Tracker,
        fact::{FactConsumer, Freeing},
        pending::{Free, Operation},
        records::{Pool, Serial},
    },
};

pub(super) fn created(tracker: &mut Tracker, who: ProcessId, pool: u64) {
    let serial = tracker.next_serial();
    if let Some(state) = tracker.state_mut(who) {
        state.seldom.made().pools.insert(pool, Pool { serial, references: 1 });
    }
}

/// A reference is taken. Pools that were not seen being created are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, pool: Option<u64>) -> Operation {
    let Some((pool, counted)) = known(tracker, who, pool) else { return Operation::Nothing };
    counted.references += 1;
    Operation::RetainPool { pool, serial: counted.serial }
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, (pool, serial): (u64, Serial), success: bool) {
    if let Some((_, counted)) = known(tracker, who, Some(pool))
        && counted.serial == serial
        && !success
    {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A reference is given back; with the last one, the frees of all memory of the pool begin.
pub(super) fn release(tracker: &mut Tracker, at: Place, pool: Option<u64>) -> Operation {
    let who = at.process;
    let Some((pool, counted)) = known(tracker, who, pool) else { return Operation::Nothing };
    counted.references = counted.references.saturating_sub(1);
    let (serial, is_last) = (counted.serial, counted.references == 0);
    let mut inside = Vec::new();
    if let Some(state) = tracker.state(who).filter(|_| is_last) {
        let of_pool = state.allocations.iter().filter(|(_, memory)| memory.requested.pool.get() == Some(pool));
        inside.extend(of_pool.filter(|(_, memory)| !memory.dying).map(|(pointer, _)| pointer));
    }
    let frees = inside.into_iter();
    let frees = frees.filter_map(|pointer| memory::free_of_own(tracker, at, pointer, Freeing::Pool(pool))).collect();
    Operation::ReleasePool { pool, serial, frees }
}

pub(super) fn released(
    tracker: &mut Tracker,
    at: Place,
    (pool, serial): (u64, Serial),
    frees: Vec<Free>,
    success: bool,
    facts: &mut (impl FactConsumer + ?Sized),
) {
    if let Some((_, counted)) = known(tracker, at.process, Some(pool))
        && counted.serial == serial
    {
        if !success {
            counted.references += 1;
        } else if counted.references == 0
            && let Some(seldom) = tracker.state_mut(at.process).and_then(|state| state.seldom.known())
        {
            seldom.pools.remove(pool);
        }
    }
    for mut free in frees {
        memory::freed(tracker, at, &mut free, success, facts);
    }
}

fn known(tracker: &mut Tracker, who: ProcessId, pool: Option<u64>) -> Option<(u64, &mut Pool)> {
    let pool = pool?;
    Some((pool, tracker.state_mut(who)?.seldom.known()?.pools.get_mut(pool)?))
}
