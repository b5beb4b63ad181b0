//! Which allocation of the CUDA driver an address lies in.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The driver's function that tells (`cuda.h`).
pub(super) const ADDRESS_RANGE: &CStr = c"cuMemGetAddressRange_v2";

type AddressRange = unsafe extern "C" fn(*mut u64, *mut usize, u64) -> c_int;

/// The function of [`ADDRESS_RANGE`], or null.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Makes the driver's function known.
///
/// # Safety
///
/// It is null or the function of this name.
pub(super) unsafe fn set_address_range(function: *mut c_void) {
    if !function.is_null() {
        FUNCTION.store(function, Ordering::Release);
    }
}

/// The first address of the allocation or mapping that an address of device memory lies in, and the one behind its
/// last. A context is current.
#[cold]
pub(super) fn around(address: u64) -> Option<[u64; 2]> {
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    let mut base = 0;
    let mut size = 0;
    // SAFETY: the stored function has this signature, and refuses what is no device memory.
    let result =
        unsafe { std::mem::transmute::<*mut c_void, AddressRange>(function)(&raw mut base, &raw mut size, address) };
    (result == 0 && size > 0).then(|| [base, base.saturating_add(size as u64)])
}
