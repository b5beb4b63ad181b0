//! Inner calls: calls of Level Zero that the runtime makes to implement a call of Unified Runtime.
//!
//! They are recorded only with `URSCOPE_INNER_CALLS`, with the number of the outer call. They repeat what the outer
//! call does, so they never reach the validation layer, and change no state of the shim.

use std::sync::atomic::{AtomicBool, Ordering};

use urscope_schema::api::{Effect, Function};
use urscope_schema::handle::Kind;

use crate::knobs;
use crate::raw::call_stacks::outer::{self, Outer};

static ARE_RECORDED: AtomicBool = AtomicBool::new(false);

/// Reads the setting. Called once, before the first call.
pub(crate) fn start() {
    ARE_RECORDED.store(knobs::read().inner_calls, Ordering::Relaxed);
}

/// The bits of the word for an outer call. The others are its number.
const IS_IPC: u64 = 1;
const IS_OF_RUNTIME: u64 = 2;
const NUMBER_SHIFT: u32 = 2;

/// The outer call for a call of a function with this effect.
#[expect(clippy::inline_always, reason = "the effect is a constant of the caller")]
#[inline(always)]
pub(crate) fn outer(effect: Effect, call: u64) -> Outer {
    let is_ipc = if effect.is_ipc() { IS_IPC } else { 0 };
    let is_of_runtime = if may_call_back(effect) { 0 } else { IS_OF_RUNTIME };
    Outer::new(call << NUMBER_SHIFT | is_ipc | is_of_runtime)
}

/// Whether code of the program may run in a call of a function with this effect: adapters other than Level Zero's call
/// back when a context is deleted (`urContextSetExtendedDeleter`), and a wait may run the callback of an event
/// (`urEventSetCallback`).
const fn may_call_back(effect: Effect) -> bool {
    matches!(effect, Effect::Releases(Kind::Context) | Effect::Waits(Kind::Event) | Effect::Signals(_))
}

/// Whether this thread is in a call in which no code of the program runs.
#[inline]
pub(crate) fn is_in_runtime() -> bool {
    outer::call().is_some_and(|outer| outer & IS_OF_RUNTIME != 0)
}

/// The number of the outer call of a call that the runtime makes on this thread, if the inner call is recorded. In an
/// IPC call, all hooked calls are; in others, those that share something: libumf puts handles and closes mappings
/// there.
#[inline]
pub(crate) fn inside_of(function: Function) -> Option<u64> {
    if !ARE_RECORDED.load(Ordering::Relaxed) {
        return None;
    }
    let outer = outer::call()?;
    (outer & IS_IPC != 0 || function.is_ipc()).then_some(outer >> NUMBER_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_inside_of_the_one_that_its_thread_is_in() {
        let put = Function::zeMemPutIpcHandle;
        let alloc = Function::zeMemAllocDevice;
        assert!(!is_in_runtime());
        let outer = |function: Function, call| outer(function.effect(), call);
        let free = outer(Function::urUSMFree, 7);
        free.begin();
        assert_eq!(inside_of(put), None, "not recorded");
        assert!(is_in_runtime());
        ARE_RECORDED.store(true, Ordering::Relaxed);
        assert_eq!((inside_of(put), inside_of(alloc)), (Some(7), None));
        let get = outer(Function::urIPCGetMemHandleExp, 8);
        get.begin();
        assert_eq!((inside_of(put), inside_of(alloc)), (Some(8), Some(8)));
        assert_eq!(std::thread::spawn(move || inside_of(put)).join().unwrap(), None, "another thread is in none");
        let release = outer(Function::urContextRelease, 9);
        release.begin();
        assert_eq!(inside_of(put), Some(9));
        assert!(!is_in_runtime(), "the program may have been called back");
        release.end();
        get.end();
        assert_eq!(inside_of(put), Some(7));
        free.end();
        assert_eq!(inside_of(put), None);
        ARE_RECORDED.store(false, Ordering::Relaxed);
    }
}
