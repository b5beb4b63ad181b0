//! Commands that access memory: which of them are recorded, and whether the host has waited since.
//!
//! A program enqueues many commands, so they are recorded only once the process shares memory. Waits are not recorded at all: a close or a
//! free says which command was the first since the last wait. Any wait counts for all commands before it, because commands may
//! depend on each other in ways that are not seen. So what is reported as not waited for was not waited for by any call that is watched.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use urscope_schema::{
    api::{Effect, Function, UrResult},
    call::Values,
    handle::Kind,
};

use crate::raw::software_device;

/// Whether this process has got or opened handle data of memory.
static SHARES: AtomicBool = AtomicBool::new(false);

/// The number of the first recorded command since the host last waited for one; 0 if there is none.
static UNWAITED: AtomicU64 = AtomicU64::new(0);

/// Whether commands are recorded.
#[inline]
pub(crate) fn are_recorded() -> bool {
    SHARES.load(Ordering::Relaxed)
}

/// Adds to the arguments of a call that ends memory what is known of commands that access it: the number of the first one that
/// the host has not waited for, and how far behind the address the first byte is that an unfinished one accesses.
#[expect(
    clippy::inline_always,
    reason = "the function is mostly a constant of the caller, so that all of this is decided when it is compiled"
)]
#[inline(always)]
pub(crate) fn before(function: Function, values: &mut Values) {
    let ends_memory = matches!(function.effect(), Effect::Ends(Kind::Usm | Kind::Mapping));
    // These two may be told to wait, or to free later.
    let at_once = !matches!(function, Function::urEnqueueUSMFreeExp | Function::zeMemFreeExt);
    if ends_memory && at_once && are_recorded() {
        values.value = Some(UNWAITED.load(Ordering::Relaxed)).filter(|call| *call != 0);
        values.offset = values.pointer.and_then(software_device::unfinished_from);
    }
}

/// Takes notice of a call that has returned, recorded or not. `call` is its number, `blocking` whether it waited for its own command.
#[expect(clippy::inline_always, reason = "as for `before`")]
#[inline(always)]
pub(crate) fn after(function: Function, call: u64, blocking: Option<u64>, result: UrResult) {
    if !result.is_success() {
        return;
    }
    if function.waits() {
        waited();
    } else if function.is_command() {
        // A C++ bool is the lowest byte of its register.
        if blocking.is_some_and(|blocking| blocking as u8 != 0) {
            waited();
        } else if call != 0 && UNWAITED.load(Ordering::Relaxed) == 0 {
            let _ = UNWAITED.compare_exchange(0, call, Ordering::Relaxed, Ordering::Relaxed);
        }
    } else if matches!(function.effect(), Effect::Makes(Kind::MemHandle | Kind::Mapping)) && !are_recorded() {
        SHARES.store(true, Ordering::Relaxed);
    }
}

#[inline]
fn waited() {
    // Threads that poll share this variable only while there is something to wait for.
    if UNWAITED.load(Ordering::Relaxed) != 0 {
        UNWAITED.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because a process has one such state.
    #[test]
    fn what_the_host_has_not_waited_for_is_known_at_the_end_of_the_memory() {
        let of_a_close = || {
            let mut values = Values { pointer: Some(0x1000), ..Values::NONE };
            before(Function::urIPCCloseMemHandleExp, &mut values);
            values.value
        };
        let (copy, done) = (Function::urEnqueueUSMMemcpy, UrResult::SUCCESS);
        assert!(!are_recorded());
        after(Function::urIPCOpenMemHandleExp, 1, None, UrResult::INVALID_ARGUMENT);
        assert!(!are_recorded(), "nothing was opened");
        after(Function::urIPCOpenMemHandleExp, 1, None, done);
        assert!(are_recorded());
        assert_eq!(of_a_close(), None);
        after(copy, 2, Some(0), done);
        after(copy, 3, Some(0), done);
        assert_eq!(of_a_close(), Some(2), "the first");
        after(Function::urQueueFinish, 0, None, UrResult::INVALID_ARGUMENT);
        assert_eq!(of_a_close(), Some(2));
        after(Function::urQueueFinish, 0, None, done);
        assert_eq!(of_a_close(), None);
        after(copy, 4, Some(0), done);
        // The other bytes of the register have no meaning.
        after(copy, 5, Some(0xff00), done);
        assert_eq!(of_a_close(), Some(4));
        after(copy, 6, Some(0xff01), done);
        assert_eq!(of_a_close(), None, "a blocking copy waits");
        let mut queued = Values::NONE;
        after(copy, 7, None, done);
        before(Function::urEnqueueUSMFreeExp, &mut queued);
        assert_eq!(queued, Values::NONE, "it waits for its turn");
        after(Function::urEventGetInfo, 0, None, done);
        assert_eq!(of_a_close(), None);
    }
}
