//! How many descriptors the process has open, written down now and then behind an IPC call.
//!
//! To count them costs microseconds, more where there are many: it is done seldom enough to be none of the calls' costs, and never
//! with a lock held.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use urscope_schema::{
    call::{Exit, Nanos},
    trace::write::Line,
};

use super::{append, base, pid};
use crate::raw::{clock, process};

/// How long it is from one count to the next: a part of the time since the first one, and at least and at most so long.
const PART: u64 = 64;
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_millis(100);

/// How many times as long as a count took, in processor time: a machine that is busy with something else makes no count dearer.
const COST: u64 = 200;

static FIRST: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Counts, if it is time to.
#[inline]
pub(super) fn take(exit: &Exit) {
    let next = NEXT.load(Ordering::Relaxed);
    if exit.time.0 >= next {
        count(exit, next);
    }
}

#[cold]
fn count(exit: &Exit, next: u64) {
    // Whoever comes first counts, and nobody else meanwhile.
    if NEXT.compare_exchange(next, u64::MAX, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let (now, used) = (clock::now(), clock::of_this_thread());
    if let Some(open) = process::open_descriptors() {
        let mut line = Line::default();
        line.descriptors(pid(), exit.tid, now, base(), open);
        append(&line);
    }
    let cost = clock::of_this_thread().saturating_sub(used);
    let _ = FIRST.compare_exchange(0, now.0, Ordering::Relaxed, Ordering::Relaxed);
    NEXT.store(due(Nanos(FIRST.load(Ordering::Relaxed)), now, cost), Ordering::Relaxed);
}

/// When to count again, after a count at `now` that cost so many nanoseconds.
fn due(first: Nanos, now: Nanos, cost: u64) -> u64 {
    let part = now.0.saturating_sub(first.0) / PART;
    let pause = part.clamp(LEAST.as_nanos() as u64, MOST.as_nanos() as u64);
    now.0 + cost + pause.max(COST * cost)
}

/// Begins anew in a forked child.
pub(super) fn restart() {
    FIRST.store(0, Ordering::Relaxed);
    NEXT.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rarer_and_never_cost_more_than_their_part() {
        let pause = |since: u64, took: u64| due(Nanos(0), Nanos(since), took) - since - took;
        assert_eq!(pause(0, 1000), 1_000_000);
        assert_eq!(pause(640_000_000, 1000), 10_000_000);
        assert_eq!(pause(u64::MAX / 2, 1000), 100_000_000);
        assert_eq!(pause(0, 1_000_000), 200_000_000);
    }
}
