//! Calls inside of others: those of Level Zero that the runtime makes to do what a call of Unified Runtime asks for.
//!
//! They are recorded only where `URSCOPE_INNER_CALLS` asks for it, with the number of the call that they are inside of. They say what that
//! one says, so they never reach the validation layer, and change nothing that is remembered of calls.

use std::sync::atomic::{AtomicBool, Ordering};

use urscope_schema::api::Function;

use crate::{knobs, raw::outer};

static ARE_RECORDED: AtomicBool = AtomicBool::new(false);

/// Reads whether they are recorded. Called once, before the first call.
pub(crate) fn start() {
    ARE_RECORDED.store(knobs::read().inner_calls, Ordering::Relaxed);
}

/// What a thread was in before a call began.
#[derive(Debug)]
pub(crate) struct Before(u64);

/// Takes notice of a call that begins on this thread.
#[expect(clippy::inline_always, reason = "the function is a constant of the caller")]
#[inline(always)]
pub(crate) fn begin(function: Function, call: u64) -> Before {
    if !ARE_RECORDED.load(Ordering::Relaxed) {
        return Before(0);
    }
    Before(outer::replace(call << 1 | u64::from(function.is_ipc())))
}

/// Takes notice of its end.
#[expect(clippy::inline_always, reason = "as for `begin`")]
#[inline(always)]
pub(crate) fn end(before: &Before) {
    if ARE_RECORDED.load(Ordering::Relaxed) {
        outer::replace(before.0);
    }
}

/// The number of the call that a call of the runtime on this thread is inside of, if it is recorded: inside of an IPC call all are that would
/// be if the program made them, and inside of others those that share something. libumf puts handles and closes mappings there.
#[inline]
pub(crate) fn inside_of(function: Function) -> Option<u64> {
    if !ARE_RECORDED.load(Ordering::Relaxed) {
        return None;
    }
    let outer = outer::get();
    (outer != 0 && (outer & 1 == 1 || function.is_ipc())).then_some(outer >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_inside_of_the_one_that_its_thread_is_in() {
        let (put, alloc) = (Function::zeMemPutIpcHandle, Function::zeMemAllocDevice);
        let free = begin(Function::urUSMFree, 6);
        assert_eq!(inside_of(put), None, "not recorded");
        end(&free);
        ARE_RECORDED.store(true, Ordering::Relaxed);
        assert_eq!(inside_of(put), None);
        let free = begin(Function::urUSMFree, 7);
        assert_eq!((inside_of(put), inside_of(alloc)), (Some(7), None));
        let get = begin(Function::urIPCGetMemHandleExp, 8);
        assert_eq!((inside_of(put), inside_of(alloc)), (Some(8), Some(8)));
        assert_eq!(std::thread::spawn(move || inside_of(put)).join().unwrap(), None, "another thread is in none");
        end(&get);
        assert_eq!(inside_of(put), Some(7));
        end(&free);
        assert_eq!(inside_of(put), None);
        ARE_RECORDED.store(false, Ordering::Relaxed);
    }
}
