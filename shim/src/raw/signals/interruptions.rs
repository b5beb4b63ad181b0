//! Blocks signals and pthread_cancel(3) while the shim allocates or accesses files.
//!
//! A signal handler that interrupts malloc(3) and calls exit(3) would wait for itself: the exit handlers allocate.
//! Opening and writing files are cancellation points, and a cancellation there would unwind Rust code that must not be
//! unwound. Signals and cancellations take effect afterwards. What changes errno is done in here, too, so it is kept.

use std::{ffi::c_int, mem::MaybeUninit};

use crate::raw::errno::Errno;

unsafe extern "C" {
    // pthread.h; the libc crate does not declare it for this target.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of pthread.h.
const DISABLE: c_int = 1;

/// The signals of faults, which are not blocked.
const FAULTS: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// Blocks interruptions of this thread as long as it lives.
pub struct HeldOff {
    cancellation: c_int,
    signals: libc::sigset_t,
    /// Restored last.
    _errno: Errno,
}

/// Blocks interruptions of this thread. It makes two system calls, so it is not for every call.
#[must_use]
pub fn hold_off() -> HeldOff {
    let mut cancellation = 0;
    let errno = Errno::now();
    let mut blocked = MaybeUninit::uninit();
    let mut signals = MaybeUninit::zeroed();
    // SAFETY: these functions fill the sets and the variable, and change only this thread.
    unsafe {
        pthread_setcancelstate(DISABLE, &raw mut cancellation);
        libc::sigfillset(blocked.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(blocked.as_mut_ptr(), fault);
        }
        libc::sigprocmask(libc::SIG_BLOCK, blocked.as_ptr(), signals.as_mut_ptr());
        HeldOff { cancellation, signals: signals.assume_init(), _errno: errno }
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: as above, with the set and the state from these functions.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.signals, std::ptr::null_mut());
            pthread_setcancelstate(self.cancellation, &raw mut disabled);
        }
    }
}
