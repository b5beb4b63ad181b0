//! `liburscope_ipc.so`: the C functions through which Python shares USM memory between processes.
//!
//! `urscope (Python) -> ctypes -> these functions -> libsycl -> Unified Runtime`: names, arguments and results are
//! those that dpctl's main line has for the same purpose, with dpctl's references to contexts, devices and USM memory.
//! There is one difference: freeing handle data also puts them, so a producer's handles do not pile up.
//!
//! The functions call libsycl's own exported functions ([`sycl`]) rather than those of Unified Runtime
//! below them, because only libsycl knows the Unified Runtime handle of a context, and because the
//! loader inside libsycl exports no symbol. So a call takes the way that a call of a C++ program takes,
//! and `liburscope.so` sees it if it is preloaded. Exceptions are caught in this library ([`guarded`]):
//! a failed call returns as dpctl's functions do, and [`urscope_ipc_last_error`] says why.
//!
//! libsycl has the functions since 2026.0. For an older one urscope's own Level Zero backend is called
//! ([`level_zero`]), with the handles of Level Zero that libsycl gives out.
//!
//! Nothing here may unwind into C, and nothing prints unless `DPCTL_VERBOSITY` asks for it.

#![allow(non_snake_case, reason = "the names are dpctl's")]

mod event;
pub mod events_interface;
mod guarded;
mod handles;
mod level_zero;
mod library;
mod message;
mod physical;
pub mod physical_interface;
mod recorded;
pub mod references;
pub mod shared;
mod sycl;

use std::ffi::{c_char, c_int, c_void};
use std::{ptr, slice};

use handles::Kind;
use references::{ContextRef, DeviceRef, given};
use sycl::{HandleData, OwnCopy, Sycl, sycl};

/// A pointer to USM memory, as dpctl's interface passes it.
pub type UsmRef = *mut c_void;

/// Runs the body of a function. Its error becomes the thread's message, and the result `None`.
fn reported<T>(function: &str, body: impl FnOnce() -> Result<T, String>) -> Option<T> {
    message::clear();
    body().map_err(|error| message::report(function, &error)).ok()
}

fn not_null<T>(pointer: *const T, name: &str) -> Result<(), String> {
    if pointer.is_null() { Err(format!("{name} is null")) } else { Ok(()) }
}

/// Whether the libsycl that dpctl uses can share memory between processes: 1 or 0. The answer is 0
/// before dpctl is loaded.
// SAFETY: no other library in a process of dpctl 0.20 to 0.22 defines the name; a later one defines it
// with the same meaning.
#[unsafe(no_mangle)]
pub extern "C" fn DPCTLIPCMem_Available() -> c_int {
    let answer = reported("DPCTLIPCMem_Available", || Ok(sycl()?.has_memory()));
    c_int::from(answer == Some(true))
}

/// Whether memory of this device can be shared between processes: 1, 0, or -1 if that could not be determined.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_device_shares_memory(device: Option<DeviceRef>) -> c_int {
    asked("urscope_ipc_device_shares_memory", device, Sycl::shares_memory)
}

/// Whether physical memory of this device can be shared between processes: 1, 0, or -1 if that could not be determined.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_device_shares_physical_memory(device: Option<DeviceRef>) -> c_int {
    let function = "urscope_ipc_device_shares_physical_memory";
    asked(function, device, Sycl::shares_physical_memory)
}

/// Whether events of this device can be shared between processes: 1, 0, or -1 if that could not be determined.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_device_shares_events(device: Option<DeviceRef>) -> c_int {
    asked("urscope_ipc_device_shares_events", device, Sycl::shares_events)
}

/// Writes the 16 bytes of a device's UUID. Returns 0; otherwise 1, and leaves them as they are.
///
/// # Safety
///
/// `uuid` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_device_uuid(device: Option<DeviceRef>, uuid: *mut [u8; 16]) -> c_int {
    let found = reported("urscope_ipc_device_uuid", || {
        let device = given(device, "DRef")?;
        not_null(uuid, "UuidOut")?;
        sycl()?.uuid(device)
    });
    let Some(found) = found else { return 1 };
    // SAFETY: it is not null, and the caller promises that it can be written.
    unsafe { uuid.write(found) };
    0
}

fn asked(
    function: &str,
    device: Option<DeviceRef>,
    ask: impl FnOnce(&Sycl, DeviceRef) -> Result<bool, String>,
) -> c_int {
    reported(function, || {
        let device = given(device, "DRef")?;
        ask(sycl()?, device)
    })
    .map_or(-1, c_int::from)
}

/// Gets handle data for USM device memory. Returns 0, and the data with their size in bytes; otherwise
/// 1, and leaves both as they are.
///
/// The data are valid until [`DPCTLIPCMem_FreeHandleData`], which must be called once for them, or
/// until the memory is freed.
///
/// # Safety
///
/// `data` and `size` must be null or writable.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DPCTLIPCMem_GetHandle(
    pointer: UsmRef,
    context: Option<ContextRef>,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("DPCTLIPCMem_GetHandle", Kind::Memory, context, data, size, |sycl, context| {
            not_null(pointer, "Ptr")?;
            sycl.get(pointer, context)
        })
    }
}

/// The common part of all gets: the order of the checks, and the result.
///
/// # Safety
///
/// `data` and `size` must be null or writable.
unsafe fn get(
    function: &str,
    kind: Kind,
    context: Option<ContextRef>,
    data: *mut *mut c_char,
    size: *mut usize,
    get: impl FnOnce(&'static Sycl, ContextRef) -> Result<HandleData, String>,
) -> c_int {
    let got = reported(function, || {
        let context = given(context, "CRef")?;
        not_null(data, "DataOut")?;
        not_null(size, "SizeOut")?;
        let sycl = sycl()?;
        let own = OwnCopy::of_context(sycl, context)?;
        let handle = get(sycl, context)?;
        handles::hold(kind, handle, own);
        Ok(handle)
    });
    let Some(handle) = got else { return 1 };
    // SAFETY: neither is null, and the caller promises that both can be written.
    unsafe {
        data.write(handle.data.cast());
        size.write(handle.size);
    }
    0
}

/// Opens handle data of another process on a device. Returns the pointer to the memory, or null. Each open needs a
/// [`DPCTLIPCMem_CloseHandle`] of its own.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DPCTLIPCMem_OpenHandle(
    data: *const c_char,
    size: usize,
    context: Option<ContextRef>,
    device: Option<DeviceRef>,
) -> UsmRef {
    reported("DPCTLIPCMem_OpenHandle", || {
        not_null(data, "HandleData")?;
        let context = given(context, "CRef")?;
        let device = given(device, "DRef")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), size) };
        sycl()?.open(bytes, context, device)
    })
    .unwrap_or(ptr::null_mut())
}

/// Closes memory that [`DPCTLIPCMem_OpenHandle`] opened in the same context. [`urscope_ipc_last_error`]
/// says whether that failed.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub extern "C" fn DPCTLIPCMem_CloseHandle(pointer: UsmRef, context: Option<ContextRef>) {
    reported("DPCTLIPCMem_CloseHandle", || {
        not_null(pointer, "MappedPtr")?;
        let context = given(context, "CRef")?;
        sycl()?.close(pointer, context)
    });
}

/// Puts handle data that [`DPCTLIPCMem_GetHandle`] or a get for another kind of object returned, and frees them. Null
/// is allowed, as for `free`. For other pointers nothing is done, and [`urscope_ipc_last_error`] says so.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub extern "C" fn DPCTLIPCMem_FreeHandleData(data: *mut c_char) {
    reported("DPCTLIPCMem_FreeHandleData", || {
        if data.is_null() {
            return Ok(());
        }
        // SAFETY: dpctl uses one libsycl, and it does not change.
        unsafe { handles::put(sycl()?, data.cast()) }
    });
}

/// Why the calling thread's last call of this library failed: text that ends with a null byte and is
/// valid until the thread's next call; null if the call did not fail.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_last_error() -> *const c_char {
    message::last()
}
