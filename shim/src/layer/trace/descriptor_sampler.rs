//! Samples the number of open descriptors of the process, after some IPC calls.
//!
//! Counting takes microseconds, and more if many are open. It is rare enough to take little time, and never holds a
//! lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use urscope_schema::call::Nanos;

use crate::raw::{clock, memory::reserve, processes::process, signals::interruptions};

/// The interval between two samples: the time since the first one, divided by this, within these limits.
const INTERVAL_DIVISOR: u64 = 64;
const MIN_INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(100);

/// The interval is at least this multiple of the processor time of a sample.
const COST_FACTOR: u64 = 200;

static FIRST_SAMPLE: AtomicU64 = AtomicU64::new(0);
static NEXT_SAMPLE: AtomicU64 = AtomicU64::new(0);

/// Takes a sample on the thread `tid`, if the interval is over.
#[inline]
pub(super) fn take(tid: u32, now: Nanos) {
    let next = NEXT_SAMPLE.load(Ordering::Relaxed);
    if now.0 >= next {
        sample(tid, next);
    }
}

#[cold]
fn sample(tid: u32, next: u64) {
    if reserve::is_used() {
        return;
    }
    let _held_off = interruptions::hold_off();
    // Only the first thread takes the sample.
    if NEXT_SAMPLE.compare_exchange(next, u64::MAX, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let now = clock::now();
    let used = clock::of_this_thread();
    if let Some(open) = process::open_descriptors() {
        super::descriptors(tid, now, open);
    }
    let cost = clock::of_this_thread().saturating_sub(used);
    let _ = FIRST_SAMPLE.compare_exchange(0, now.0, Ordering::Relaxed, Ordering::Relaxed);
    NEXT_SAMPLE.store(next_sample(Nanos(FIRST_SAMPLE.load(Ordering::Relaxed)), now, cost), Ordering::Relaxed);
}

/// When to take the next sample, after one at `now` that took `cost` nanoseconds.
fn next_sample(first: Nanos, now: Nanos, cost: u64) -> u64 {
    let part = now.0.saturating_sub(first.0) / INTERVAL_DIVISOR;
    let interval = part.clamp(MIN_INTERVAL.as_nanos() as u64, MAX_INTERVAL.as_nanos() as u64);
    now.0 + cost + interval.max(COST_FACTOR * cost)
}

/// Resets the intervals in a forked child.
pub(super) fn restart() {
    FIRST_SAMPLE.store(0, Ordering::Relaxed);
    NEXT_SAMPLE.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_rarer_and_never_cost_more_than_their_share() {
        let interval = |since: u64, took: u64| next_sample(Nanos(0), Nanos(since), took) - since - took;
        assert_eq!(interval(0, 1000), 1_000_000);
        assert_eq!(interval(640_000_000, 1000), 10_000_000);
        assert_eq!(interval(u64::MAX / 2, 1000), 100_000_000);
        assert_eq!(interval(0, 1_000_000), 200_000_000);
    }
}
