//! The functions for memory for a caller that has only the driver's handles: `liburscope_ipc.so`, if the SYCL runtime
//! lacks them.
//!
//! The handle data are those of the backend, so only one side need run under urscope. Nothing here is recorded.

use std::{ffi::c_void, ptr::with_exposed_provenance_mut};

use urscope_schema::api::{ResultCode, role::Context};

use super::LevelZero;
use super::driver::{ZeHandle, driver};
use super::handle_data::{self, HandleData};
use super::memory::{ISSUED_HANDLES, Origin, export, open_own, register, unregister};
use crate::backend::Family;
use crate::raw::{args::Arg, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};

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
pub unsafe fn get(context: *mut c_void, pointer: *mut c_void) -> Result<(*mut c_void, usize), ResultCode> {
    // SAFETY: the caller's promise.
    let (contents, reference) = export(unsafe { ZeHandle::new(context) }, pointer.expose_provenance())?;
    Ok((with_exposed_provenance_mut(ISSUED_HANDLES.issue(&contents, reference)), handle_data::SIZE))
}

/// Puts handle data of [`get`], and frees them. INVALID_ARGUMENT for other addresses.
///
/// # Safety
///
/// `context` is the one of the get.
pub unsafe fn put(context: *mut c_void, data: *mut c_void) -> Result<(), ResultCode> {
    // SAFETY: the caller's promise.
    let context = unsafe { ZeHandle::new(context) };
    if let Some(reference) = ISSUED_HANDLES.take(data.expose_provenance())? {
        reference.end(driver(), Some(context));
    }
    Ok(())
}

/// Opens handle data of another process, or of this one, on a device. INVALID_VALUE for data that are foreign,
/// damaged or put, or whose producer has ended. INVALID_ARGUMENT if the kernel refuses access to the producer.
///
/// # Safety
///
/// `context` is a live `ze_context_handle_t`, and `device` a `ze_device_handle_t` of its driver.
pub unsafe fn open(context: *mut c_void, device: *mut c_void, data: &[u8]) -> Result<*mut c_void, ResultCode> {
    // SAFETY: the caller's promise.
    let (context, device) = unsafe { (ZeHandle::new(context), ZeHandle::new(device)) };
    let data = HandleData::decode(data).ok().filter(|data| data.kind == Family::Memory);
    let (pointer, origin) = open_own(&data.ok_or(ResultCode::INVALID_VALUE)?, context, device)?;
    register(pointer, context.address(), origin);
    Ok(with_exposed_provenance_mut(pointer))
}

/// Closes a mapping of [`open`]. INVALID_ARGUMENT for other addresses, INVALID_CONTEXT for another context.
///
/// # Safety
///
/// `context` is a live `ze_context_handle_t`.
pub unsafe fn close(context: *mut c_void, pointer: *mut c_void) -> Result<(), ResultCode> {
    // SAFETY: the caller's promise.
    let context = unsafe { ZeHandle::new(context) };
    match unregister(pointer.expose_provenance(), context.address())? {
        Origin::OwnBackend { base } => driver().close(context, base),
        Origin::Adapter => Err(ResultCode::INVALID_ARGUMENT),
    }
}

/// The contexts that the program made and the numbers of their adapters, by the driver's handles. A newer context
/// replaces one with the same handle, which has ended unnoticed.
static CONTEXTS: ForkReset<Mutex<HashMap<ZeHandle, (usize, usize)>>> = ForkReset::new(Mutex::default);

/// Forgets the parent's contexts.
pub(crate) fn after_fork_in_child() {
    CONTEXTS.reset(Mutex::default());
}

/// Adds a context that an adapter has made.
pub(crate) fn add_context(at: LevelZero, context: usize) {
    // SAFETY: the adapter has just made it.
    let handle = unsafe { Arg::new(Context(context)) };
    if let Ok(native) = at.context(handle) {
        CONTEXTS.get().lock().insert(native, (context, at.via));
    }
}

/// Removes the context with the driver's handle, which is about to end.
pub(crate) fn remove_context(native: ZeHandle) {
    CONTEXTS.get().lock().remove(&native);
}

/// The adapter's context and device that wrap the driver's, with which the recorded functions can be called. They
/// live as long as the driver's. `None` if no adapter that uses urscope's backend has made such a context.
///
/// # Safety
///
/// Both are live handles of the driver's.
pub unsafe fn adapter_handles(context: *mut c_void, device: *mut c_void) -> Option<(*mut c_void, *mut c_void)> {
    // SAFETY: the caller's promise.
    let (context, device) = unsafe { (ZeHandle::new(context), ZeHandle::new(device)) };
    let (context, via) = CONTEXTS.get().lock().get(&context).copied()?;
    let at = LevelZero::new(via);
    // SAFETY: an adapter made it for the driver's context, which is alive, so it has not ended.
    let devices = at.native().ok()?.devices(unsafe { Arg::new(Context(context)) }).ok()?;
    let device = devices.into_iter().find(|candidate| at.device(*candidate) == Ok(device))?;
    Some((with_exposed_provenance_mut(context), with_exposed_provenance_mut(device.get().0)))
}
