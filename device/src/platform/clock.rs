//! The one clock of the device: nanoseconds of `CLOCK_MONOTONIC`, the same for all processes of a host.
//!
//! Global timestamps, kernel timestamps and timestamps written by command lists all come from here. Must never be
//! mixed with another clock: profiling subtracts them from one another.

use std::time::{Duration, Instant};

/// Bits of a timestamp that count: the device says this in its properties, and masks with it.
pub(crate) const VALID_BITS: u32 = 63;

/// Now, in nanoseconds.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes the timespec that it is given, which lives on our stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64) & ((1 << VALID_BITS) - 1)
}

/// The moment at which a Level Zero timeout of `nanoseconds` ends. `None` is never (`UINT64_MAX`, or beyond what the
/// clock can count).
pub(crate) fn deadline(nanoseconds: u64) -> Option<Instant> {
    if nanoseconds == u64::MAX { None } else { Instant::now().checked_add(Duration::from_nanos(nanoseconds)) }
}
