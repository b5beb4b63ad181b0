//! Asks the software device which memory its unfinished commands access. Other devices cannot be asked.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::symbols::modules::Module;

/// A symbol of the software device, which is a driver and also the loader for programs.
pub const MARK: &CStr = c"zeSoftDriver";

const UNFINISHED_FROM: &CStr = c"zeSoftUnfinishedFrom";

static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Registers a library as the software device.
pub fn found(library: &Module) {
    if let Some(address) = library.address_of(UNFINISHED_FROM) {
        FUNCTION.store(std::ptr::with_exposed_provenance_mut(address), Ordering::Release);
    }
}

/// The offset from an address of the first byte that an unfinished command of this process accesses, `None` if all have
/// completed; `None` with another device, which cannot be asked.
pub fn unfinished_from(address: u64) -> Option<Option<u64>> {
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    // SAFETY: `found` found it under this name in the software device, whose README has this signature. It does not
    // read the caller's memory.
    let ask = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> usize>(function) };
    Some(Some(ask(address as usize)).filter(|distance| *distance != usize::MAX).map(|distance| distance as u64))
}
