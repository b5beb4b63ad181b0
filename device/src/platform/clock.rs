//! The device clock: nanoseconds of `CLOCK_MONOTONIC_RAW`, which all processes of a host share.
//!
//! The adapters take the time of the host from this clock, because Intel's driver does, and compare the two.
//! Global timestamps, kernel timestamps and timestamps that command lists write all come from here. Must never be mixed
//! with another clock, because profiling subtracts timestamps from one another.

/// Number of valid bits in a timestamp. The device properties report it, and [`now`] masks with it.
pub(crate) const VALID_BITS: u32 = 63;

/// The current time, in nanoseconds.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW) & ((1 << VALID_BITS) - 1)
}

/// The time of `CLOCK_MONOTONIC` in nanoseconds, for the observer of commands only.
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes the timespec that it is given, which is on our stack.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
