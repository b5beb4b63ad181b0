//! What the software device tells: which memory its unfinished commands access. No other device can be asked.

use std::{
    ffi::{CStr, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::symbols::modules::Module;

/// What the software device exports, which is a driver and at the same time what programs take for the loader.
pub const MARK: &CStr = c"zeSoftDriver";

const UNFINISHED_FROM: &CStr = c"zeSoftUnfinishedFrom";

static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Takes notice of the software device, which is this library.
pub fn found(library: &Module) {
    if let Some(address) = library.address_of(UNFINISHED_FROM) {
        FUNCTION.store(std::ptr::with_exposed_provenance_mut(address), Ordering::Release);
    }
}

/// How many bytes behind an address the first byte is that an unfinished command of this process accesses; `None` if
/// there is none, or if the device is another one.
pub fn unfinished_from(address: u64) -> Option<u64> {
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    // SAFETY: `found` has seen it under this name in the software device, whose README gives it this signature. It
    // reads nothing of the caller's.
    let ask = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> usize>(function) };
    Some(ask(address as usize)).filter(|distance| *distance != usize::MAX).map(|distance| distance as u64)
}
