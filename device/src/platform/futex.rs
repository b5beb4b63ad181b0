//! Waiting on a word in shared memory (futex(2)), across processes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps until `word` differs from `seen`, [`wake_all`] is called on it in any process, or `timeout` (`None`: never)
/// has passed. May return early for no reason.
pub(crate) fn wait(word: &AtomicU32, seen: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: FUTEX_WAIT(2) reads the word and the timeout, which both outlive the call. FUTEX_PRIVATE_FLAG is not set,
    // because the word is shared between processes.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, timeout) };
}

/// Changes `word`, and wakes all threads that wait on it, in all processes.
pub(crate) fn wake_all(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    // SAFETY: FUTEX_WAKE(2) uses the word's address only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
