//! The functions for memory, for a caller that has the driver's handles and no adapter's: `liburscope_ipc.so`, where
//! the SYCL runtime has no functions of its own.
//!
//! Handle data are those of the other functions here, so either side may run under urscope and the other not. Nothing
//! here is recorded.

use std::ffi::c_void;

use urscope_schema::api::UrResult;

use super::{
    contexts,
    driver::{ZeHandle, driver},
    memory::by_driver,
};

/// Whether the driver that the process has loaded can share memory.
pub fn shares_memory() -> bool {
    driver().shares_memory()
}

/// Handle data for the allocation that `pointer` lies in: their address, and their length in bytes. They are valid
/// until [`put`].
///
/// # Safety
///
/// `context` is a live `ze_context_handle_t`.
pub unsafe fn get(context: *mut c_void, pointer: *mut c_void) -> Result<(*mut c_void, usize), UrResult> {
    // SAFETY: the caller's promise.
    let (data, size) = by_driver::get(unsafe { ZeHandle::new(context) }, pointer.expose_provenance())?;
    Ok((std::ptr::with_exposed_provenance_mut(data), size))
}

/// Puts handle data of [`get`], and frees them. INVALID_ARGUMENT for other addresses.
///
/// # Safety
///
/// `context` is the one of the get.
pub unsafe fn put(context: *mut c_void, data: *mut c_void) -> Result<(), UrResult> {
    // SAFETY: the caller's promise.
    by_driver::put(unsafe { ZeHandle::new(context) }, data.expose_provenance())
}

/// Opens handle data of another process, or of this one, on a device. INVALID_VALUE for data that are not ours,
/// damaged, or put; and for those of a producer that has ended. INVALID_ARGUMENT where the kernel refuses access to
/// the producer.
///
/// # Safety
///
/// `context` is a live `ze_context_handle_t`, and `device` a `ze_device_handle_t` of its driver.
pub unsafe fn open(context: *mut c_void, device: *mut c_void, data: &[u8]) -> Result<*mut c_void, UrResult> {
    // SAFETY: the caller's promise.
    let (context, device) = unsafe { (ZeHandle::new(context), ZeHandle::new(device)) };
    by_driver::open(context, device, data).map(std::ptr::with_exposed_provenance_mut)
}

/// Closes a mapping of [`open`]. INVALID_ARGUMENT for other addresses, INVALID_CONTEXT for another context.
///
/// # Safety
///
/// `context` is a live `ze_context_handle_t`.
pub unsafe fn close(context: *mut c_void, pointer: *mut c_void) -> Result<(), UrResult> {
    // SAFETY: the caller's promise.
    by_driver::close(unsafe { ZeHandle::new(context) }, pointer.expose_provenance())
}

/// What an adapter under urscope has around the driver's context and device: its context and its device. With these,
/// the recorded functions can be called. `None` where no adapter that our backend serves has made such a context.
///
/// # Safety
///
/// Both are live handles of the driver's.
pub unsafe fn adapter_handles(context: *mut c_void, device: *mut c_void) -> Option<(*mut c_void, *mut c_void)> {
    // SAFETY: the caller's promise.
    let (context, device) = unsafe { (ZeHandle::new(context), ZeHandle::new(device)) };
    let (context, device) = contexts::find(context, device)?;
    Some((std::ptr::with_exposed_provenance_mut(context), std::ptr::with_exposed_provenance_mut(device)))
}
