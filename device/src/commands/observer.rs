//! What tools ask of the device (`device/interface/ze_soft.h`): which memory unfinished commands access, and which
//! commands have accessed memory that processes share, and when.
//!
//! The tool says which of its calls a command comes from, when the command is appended. Must never be told with a lock
//! held, nor after something that the command signals.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(super) use urscope_device_interface::Access;
use urscope_device_interface::{CurrentCall, Executed, Interface, VERSION};

use super::stream;

/// What each library of the device exports as `zeSoftInterface`.
pub const INTERFACE: Interface =
    Interface { size: size_of::<Interface>() as u32, version: VERSION, unfinished_from, observe_commands };

static CURRENT_CALL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static EXECUTED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn unfinished_from(address: usize) -> usize {
    stream::unfinished_from(address).unwrap_or(usize::MAX)
}

/// A signal handler may call it.
extern "C" fn observe_commands(current_call: CurrentCall, executed: Executed) {
    EXECUTED.store(executed as *mut c_void, Ordering::Release);
    CURRENT_CALL.store(current_call as *mut c_void, Ordering::Release);
}

/// The call that a command is appended in; 0 if none is known.
pub(super) fn current_call() -> u64 {
    let function = CURRENT_CALL.load(Ordering::Acquire);
    if function.is_null() {
        return 0;
    }
    // SAFETY: only `observe_commands` stores here, a function of this type.
    let current_call = unsafe { transmute::<*mut c_void, CurrentCall>(function) };
    current_call()
}

/// Tells of an access.
pub(super) fn tell(access: &Access) {
    let function = EXECUTED.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: as above.
        let executed = unsafe { transmute::<*mut c_void, Executed>(function) };
        executed(access);
    }
}
