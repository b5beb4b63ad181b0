//! Threads that leave the signals of the process to the application.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Stack of a worker, in bytes. A worker only copies and fills memory; the default would reserve 2 MiB or more for
/// each.
const STACK: usize = 256 << 10;
/// Stack of a worker that runs kernels, in bytes: their private and local memory lies there. The default of Linux.
const KERNEL_STACK: usize = 8 << 20;

/// The signals of a fault. Blocked, they would end the process without the handler for faults in kernels.
pub(crate) const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// Starts a thread with all signals blocked.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A new thread inherits the mask of the one that starts it.
    with_mask(&[], || start(STACK, body))
}

/// Starts a thread that may run kernels: with a larger stack, and all signals blocked except those of faults.
pub(crate) fn spawn_for_kernels(body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    with_signals_blocked(|| start(KERNEL_STACK, body))
}

/// Runs `body` with all signals of the calling thread blocked, except those of faults. Threads that start in it inherit
/// that.
pub(crate) fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    with_mask(&FAULTS, body)
}

fn start(stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name("ze_soft".into()).stack_size(stack).spawn(body)
}

/// Runs `body` with all signals of the calling thread blocked, except `open`.
fn with_mask<T>(open: &[i32], body: impl FnOnce() -> T) -> T {
    // SAFETY: an all-zero sigset_t is a valid value, and the calls write into these two only.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for signal in open {
            libc::sigdelset(&raw mut all, *signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = body();
    // SAFETY: pthread_sigmask filled the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}
