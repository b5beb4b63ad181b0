//! USM pools: counted references. The last release frees all memory of the pool.

use urscope_schema::handle::{Handle, Kind};

use super::memory;
use crate::place::{Place, ProcessId};
use crate::tracker::pending::{Free, PendingChange};
use crate::tracker::records::{Life, Pool, Serial};
use crate::tracker::{changes::Changes, freeing::Freeing, state::Tracker};

pub(super) fn created(tracker: &mut Tracker, who: ProcessId, pool: u64) {
    let serial = tracker.next_serial();
    if let Some(state) = tracker.state_mut(who) {
        state.pools.insert(pool, Pool { serial, references: 1 });
    }
}

/// A reference is taken. Pools whose creation was not recorded are not counted.
pub(super) fn retain(tracker: &mut Tracker, who: ProcessId, pool: Option<u64>) -> PendingChange {
    let Some((pool, counted)) = known(tracker, who, pool) else { return PendingChange::Nothing };
    counted.references += 1;
    PendingChange::Retain(life(pool, counted.serial))
}

pub(super) fn retained(tracker: &mut Tracker, who: ProcessId, pool: Life, success: bool) {
    if let Some((_, counted)) = known(tracker, who, Some(pool.handle.value))
        && counted.serial == pool.serial
        && !success
    {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A reference is released; with the last one, the frees of all memory of the pool begin.
pub(super) fn release(tracker: &mut Tracker, at: Place, pool: Option<u64>) -> PendingChange {
    let who = at.process;
    let Some((pool, counted)) = known(tracker, who, pool) else { return PendingChange::Nothing };
    counted.references = counted.references.saturating_sub(1);
    let serial = counted.serial;
    let is_last = counted.references == 0;
    let frees = if is_last { memory::free_all(tracker, at, Freeing::Pool(pool)) } else { Vec::new() };
    PendingChange::ReleasePool { pool: life(pool, serial), frees }
}

/// A release has returned.
pub(super) fn released(tracker: &mut Tracker, at: Place, pool: Life, frees: &mut [Free], success: bool) -> Changes {
    if let Some((_, counted)) = known(tracker, at.process, Some(pool.handle.value))
        && counted.serial == pool.serial
    {
        if !success {
            counted.references += 1;
        } else if counted.references == 0
            && let Some(state) = tracker.state_mut(at.process)
        {
            state.pools.remove(&pool.handle.value);
        }
    }
    frees.iter_mut().map(|free| memory::freed(tracker, at, free, success)).collect()
}

fn life(pool: u64, serial: Serial) -> Life {
    Life { handle: Handle { kind: Kind::Pool, value: pool }, serial }
}

fn known(tracker: &mut Tracker, who: ProcessId, pool: Option<u64>) -> Option<(u64, &mut Pool)> {
    let pool = pool?;
    Some((pool, tracker.state_mut(who)?.pools.get_mut(&pool)?))
}
