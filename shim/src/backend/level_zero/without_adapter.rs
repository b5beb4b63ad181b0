//! The functions for memory for a caller that has only the driver's handles: `liburscope_ipc.so`, if the SYCL runtime
//! lacks them.
//!
//! The handle data are those of the backend, so only one side need run under urscope. Nothing here is recorded.

use std::ffi::c_void;

use urscope_schema::api::UrResult;

use super::{
    contexts,
    driver::{ZeHandle, driver},
    memory::by_driver,
};

/// Whether the driver of the process can share memory.
pub fn shares_memory() -> bool {
    driver().shares_memory()
}

/// Makes handle data for the allocation that contains `pointer`; returns their address and length in bytes. They are
/// valid until [`put`].
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

/// Opens handle data of another process, or of this one, on a device. INVALID_VALUE for data that are foreign,
/// damaged or put, or whose producer has ended. INVALID_ARGUMENT if the kernel refuses access to the producer.
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

/// The adapter's context and device that wrap the driver's, with which the recorded functions can be called. `None`
/// if no adapter that uses urscope's backend has made such a context.
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
