//! Threads that leave the signals of the process to the application.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Stack of a worker, in bytes. A worker only copies and fills memory; the default would reserve 2 MiB or more for
/// each.
const STACK: usize = 256 << 10;

/// Starts a thread with all signals blocked.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A new thread inherits the mask of the one that starts it.
    let before = block_signals();
    let started = Builder::new().name("ze_soft".into()).stack_size(STACK).spawn(body);
    restore_signals(&before);
    started
}

/// Blocks all signals of the calling thread, and returns the previous mask.
fn block_signals() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is a valid value, and the calls write into these two only.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: pthread_sigmask filled the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
