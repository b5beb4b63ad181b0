//! The clocks: `CLOCK_MONOTONIC` for records, the others for header, footer, and urscope's own cost. Must never block.

use urscope_schema::{call::Nanos, trace::records::Clock};

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) fills the timespec; it cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The current time, comparable between all processes of one boot.
#[inline]
pub fn now() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC))
}

/// The processor time that this thread has used, in nanoseconds.
pub fn of_this_thread() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// All clocks, read within a fraction of a microsecond.
pub fn snapshot() -> Clock {
    let monotonic_ns = read(libc::CLOCK_MONOTONIC);
    let boottime_ns = read(libc::CLOCK_BOOTTIME);
    let realtime_ns = read(libc::CLOCK_REALTIME);
    Clock { base_ns: Clock::base(Nanos(monotonic_ns)), monotonic_ns, boottime_ns, realtime_ns }
}
