//! The end of a process that has opened the engine. The engine's exit handlers would wait for ever for
//! threads that have faulted, and, in a forked child, for threads that are only in the parent.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::faults;
use crate::platform::{futex, process, threads};

/// How long the engine's exit handlers may take in a forked child. They have nothing to do there and
/// usually take microseconds.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Not 0 once the engine's exit handlers have returned.
static HANDLERS_RETURNED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Must be called before the engine is opened: exit handlers run in reverse order, so this one runs after the engine's.
pub(super) fn register_before_engine() {
    // SAFETY: on_exit(3) calls the function with the status and this argument, which is not used.
    unsafe { on_exit(after_engine_handlers, ptr::null_mut()) };
}

/// Must be called once the engine is open, so that this exit handler runs before the engine's.
pub(super) fn register_after_engine() {
    // SAFETY: as above.
    unsafe { on_exit(before_engine_handlers, ptr::null_mut()) };
}

/// Ends the process at once if the engine would wait forever, and a forked child after
/// [`EXIT_TIMEOUT`], because a thread of the parent may have held a lock of the engine at the fork.
/// Functions that were registered with atexit(3) before the engine was opened do not run then.
extern "C" fn before_engine_handlers(status: c_int, _: *mut c_void) {
    let is_child = process::is_forked_child();
    if process::devices_are_lost() || is_child && faults::is_running() {
        end(status);
    }
    if is_child {
        // Without the thread, the process waits for the engine.
        let _ = threads::spawn(move || end_if_stuck(status));
    }
}

extern "C" fn after_engine_handlers(_: c_int, _: *mut c_void) {
    futex::wake_all(&HANDLERS_RETURNED);
}

/// Ends the process after [`EXIT_TIMEOUT`], unless the engine's exit handlers have returned by then.
fn end_if_stuck(status: c_int) {
    let began = Instant::now();
    while HANDLERS_RETURNED.load(Ordering::Acquire) == 0 {
        let Some(left) = EXIT_TIMEOUT.checked_sub(began.elapsed()) else { end(status) };
        futex::wait(&HANDLERS_RETURNED, 0, Some(left));
    }
}

fn end(status: c_int) -> ! {
    // SAFETY: fflush(3) of all streams, which exit(3) would do later, and _exit(2).
    unsafe {
        libc::fflush(ptr::null_mut());
        libc::_exit(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of a forked child that exits with 7, where these are the exit handlers of the program and
    /// of the engine.
    fn status_of_child(
        of_program: extern "C" fn(c_int, *mut c_void),
        of_engine: extern "C" fn(c_int, *mut c_void),
    ) -> c_int {
        process::watch_forks();
        // SAFETY: the child registers functions and exits.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as in `register_after_engine`.
            unsafe {
                on_exit(of_program, ptr::null_mut());
                register_before_engine();
                on_exit(of_engine, ptr::null_mut());
                register_after_engine();
                libc::exit(7)
            }
        }
        let mut status = 0;
        // SAFETY: waitpid writes the status that it is given.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    extern "C" fn wait_for_ever(_: c_int, _: *mut c_void) {
        loop {
            // SAFETY: pause(2) has no arguments.
            unsafe { libc::pause() };
        }
    }

    extern "C" fn return_at_once(_: c_int, _: *mut c_void) {}

    extern "C" fn exit_with_9(_: c_int, _: *mut c_void) {
        std::thread::sleep(EXIT_TIMEOUT + Duration::from_millis(500));
        // SAFETY: ends the child.
        unsafe { libc::_exit(9) }
    }

    #[test]
    fn a_child_in_which_the_engine_waits_ends() {
        assert_eq!(status_of_child(exit_with_9, wait_for_ever), 7);
    }

    #[test]
    fn a_child_in_which_it_does_not_has_the_time_that_it_takes() {
        assert_eq!(status_of_child(exit_with_9, return_at_once), 9);
    }
}
