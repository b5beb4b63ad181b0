//! The signal handlers of the application, which the engine must not change.
//!
//! Its compiler replaces those of sixteen signals when a context is created or a program is built. Must never change a
//! handler that the application has installed meanwhile, except for the signals that the engine replaces at that
//! moment.

use std::{mem, ptr};

/// The largest signal number of Linux.
const LAST: i32 = 64;

/// Runs `body`, and then gives every signal the handler that it had before.
pub(super) fn with_handlers_restored<T>(body: impl FnOnce() -> T) -> T {
    let before: Vec<_> = (1..=LAST).map(|signal| (signal, handler(signal))).collect();
    let result = body();
    for (signal, before) in before {
        let (Some(before), Some(now)) = (before, handler(signal)) else { continue };
        if now.sa_sigaction != before.sa_sigaction || now.sa_flags != before.sa_flags {
            // SAFETY: this is the handler that the signal had.
            unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) };
        }
    }
    result
}

/// The handler of a signal, or `None` for a number that the C library keeps for itself.
fn handler(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: an all-zero sigaction is a valid value, and sigaction(2) only writes to it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut action) == 0).then_some(action)
    }
}
