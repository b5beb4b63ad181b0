//! `liburscope_ipc.so`: the C functions through which Python shares USM memory between processes.
//!
//! `urscope (Python) -> ctypes -> these functions -> libsycl -> Unified Runtime`: names, arguments and results are those that dpctl's
//! main line has for the same purpose, with dpctl's references to contexts, devices and USM memory. There is one difference: freeing
//! handle data also puts them, so a producer's handles do not pile up.
//!
//! The functions call libsycl's own exported functions ([`sycl`]) rather than those of Unified Runtime below them, because only
//! libsycl knows the Unified Runtime handle of a context, and because the loader inside libsycl exports no symbol. So a call takes the
//! way that a call of a C++ program takes, and `liburscope.so` sees it if it is preloaded. Exceptions are caught in this library
//! ([`guarded`]): a failed call returns as dpctl's functions do, and [`urscope_ipc_last_error`] says why.
//!
//! libsycl has the functions since 2026.0. For an older one urscope's own Level Zero backend is called ([`level_zero`]), with the
//! handles of Level Zero that libsycl gives out.
//!
//! Nothing here may unwind into C, and nothing prints unless `DPCTL_VERBOSITY` asks for it.

#![allow(non_snake_case, reason = "the names are dpctl's")]

mod event;
mod guarded;
mod handles;
mod level_zero;
mod library;
mod message;
mod physical;
mod recorded;
mod shared;
mod sycl;

use std::{
    ffi::{c_char, c_int, c_void},
    ptr, slice,
};

use handles::Kind;
use shared::Shared;
use sycl::{ContextRef, DeviceRef, EventRef, HandleData, OwnContext, QueueRef, Sycl, sycl};

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

/// Whether the libsycl that dpctl uses can share memory between processes: 1 or 0. The answer is 0 before dpctl is loaded.
// SAFETY: no other library in a process of dpctl 0.20 to 0.22 defines the name; a later one defines it with the same meaning.
#[unsafe(no_mangle)]
pub extern "C" fn DPCTLIPCMem_Available() -> c_int {
    let answer = reported("DPCTLIPCMem_Available", || Ok(sycl()?.has_memory()));
    c_int::from(answer == Some(true))
}

/// Whether memory of this device can be shared between processes: 1, 0, or -1 if that could not be found out.
///
/// # Safety
///
/// `device` must be a device reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_device_shares_memory(device: DeviceRef) -> c_int {
    // SAFETY: the caller's promise.
    asked("urscope_ipc_device_shares_memory", device, |sycl| unsafe { sycl.shares_memory(device) })
}

/// The same for physical memory.
///
/// # Safety
///
/// `device` must be a device reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_device_shares_physical_memory(device: DeviceRef) -> c_int {
    let function = "urscope_ipc_device_shares_physical_memory";
    // SAFETY: the caller's promise.
    asked(function, device, |sycl| unsafe { sycl.shares_physical_memory(device) })
}

/// The same for events.
///
/// # Safety
///
/// `device` must be a device reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_device_shares_events(device: DeviceRef) -> c_int {
    // SAFETY: the caller's promise.
    asked("urscope_ipc_device_shares_events", device, |sycl| unsafe { sycl.shares_events(device) })
}

/// Writes the 16 bytes of a device's UUID. Returns 0; otherwise 1, and leaves them as they are.
///
/// # Safety
///
/// `device` must be null or a device reference of dpctl; `uuid` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_device_uuid(device: DeviceRef, uuid: *mut [u8; 16]) -> c_int {
    let found = reported("urscope_ipc_device_uuid", || {
        not_null(device, "DRef")?;
        not_null(uuid, "UuidOut")?;
        // SAFETY: the caller's promise.
        unsafe { sycl()?.uuid(device) }
    });
    let Some(found) = found else { return 1 };
    // SAFETY: it is not null, and the caller promises that it can be written.
    unsafe { uuid.write(found) };
    0
}

fn asked(function: &str, device: DeviceRef, ask: impl FnOnce(&Sycl) -> Result<bool, String>) -> c_int {
    reported(function, || {
        not_null(device, "DRef")?;
        ask(sycl()?)
    })
    .map_or(-1, c_int::from)
}

/// Gets handle data for USM device memory. Returns 0, and the data with their size in bytes; otherwise 1, and leaves both as they are.
///
/// The data are valid until [`DPCTLIPCMem_FreeHandleData`], which must be called once for them, or until the memory is freed.
///
/// # Safety
///
/// `context` must be a context reference of dpctl; `data` and `size` must be null or writable.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DPCTLIPCMem_GetHandle(
    pointer: UsmRef,
    context: ContextRef,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("DPCTLIPCMem_GetHandle", Kind::Memory, context, data, size, |sycl| {
            not_null(pointer, "Ptr")?;
            sycl.get(pointer, context)
        })
    }
}

/// What all gets have in common: the order of the checks, and the answer.
///
/// # Safety
///
/// `context` must be null or a context reference of dpctl; `data` and `size` must be null or writable.
unsafe fn get(
    function: &str,
    kind: Kind,
    context: ContextRef,
    data: *mut *mut c_char,
    size: *mut usize,
    get: impl FnOnce(&'static Sycl) -> Result<HandleData, String>,
) -> c_int {
    let got = reported(function, || {
        not_null(context, "CRef")?;
        not_null(data, "DataOut")?;
        not_null(size, "SizeOut")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        let own = unsafe { OwnContext::copy(sycl, context)? };
        let handle = get(sycl)?;
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
/// `data` must be null or point to `size` bytes; `context` and `device` must be references of dpctl.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DPCTLIPCMem_OpenHandle(
    data: *const c_char,
    size: usize,
    context: ContextRef,
    device: DeviceRef,
) -> UsmRef {
    reported("DPCTLIPCMem_OpenHandle", || {
        not_null(data, "HandleData")?;
        not_null(context, "CRef")?;
        not_null(device, "DRef")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), size) };
        // SAFETY: the caller's promise.
        unsafe { sycl()?.open(bytes, context, device) }
    })
    .unwrap_or(ptr::null_mut())
}

/// Closes memory that [`DPCTLIPCMem_OpenHandle`] opened in the same context. [`urscope_ipc_last_error`] says whether that failed.
///
/// # Safety
///
/// `context` must be a context reference of dpctl.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DPCTLIPCMem_CloseHandle(pointer: UsmRef, context: ContextRef) {
    reported("DPCTLIPCMem_CloseHandle", || {
        not_null(pointer, "MappedPtr")?;
        not_null(context, "CRef")?;
        // SAFETY: the caller's promise.
        unsafe { sycl()?.close(pointer, context) }
    });
}

/// Puts handle data that [`DPCTLIPCMem_GetHandle`] or a get for another kind of object gave, and frees them. Null is allowed, as for `free`. For other pointers nothing is
/// done, and [`urscope_ipc_last_error`] says so.
// SAFETY: as for `DPCTLIPCMem_Available`.
#[unsafe(no_mangle)]
pub extern "C" fn DPCTLIPCMem_FreeHandleData(data: *mut c_char) {
    reported("DPCTLIPCMem_FreeHandleData", || {
        if data.is_null() {
            return Ok(());
        }
        // SAFETY: there is one libsycl behind dpctl, and it does not change.
        unsafe { handles::put(sycl()?, data.cast()) }
    });
}

/// Makes an event that can be shared: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
///
/// # Safety
///
/// `context` must be null or a context reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_create(context: ContextRef) -> EventRef {
    reported("urscope_ipc_event_create", || {
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.make(sycl, context) }
    })
    .unwrap_or(ptr::null())
}

/// Has a queue signal a shared event when all that was submitted to it before is done. Returns 0, or 1.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_signal(queue: QueueRef, event: EventRef) -> c_int {
    enqueued("urscope_ipc_event_signal", queue, event, |sycl| {
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.signal(sycl, queue, event) }
    })
}

/// Has all that is submitted to a queue from now on wait for the last signal of a shared event. Returns 0, or 1.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_wait(queue: QueueRef, event: EventRef) -> c_int {
    enqueued("urscope_ipc_event_wait", queue, event, |sycl| {
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.wait(sycl, queue, event) }
    })
}

fn enqueued(
    function: &str,
    queue: QueueRef,
    event: EventRef,
    enqueue: impl FnOnce(&'static Sycl) -> Result<(), String>,
) -> c_int {
    let done = reported(function, || {
        not_null(queue, "QRef")?;
        not_null(event, "ERef")?;
        enqueue(sycl()?)
    });
    c_int::from(done.is_none())
}

/// Gets handle data for a shared event, as [`DPCTLIPCMem_GetHandle`] does for memory. The event must live until they are freed.
///
/// # Safety
///
/// The references must be null or dpctl's, and the event of that context; `data` and `size` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_get(
    event: EventRef,
    context: ContextRef,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("urscope_ipc_event_get", Kind::Event, context, data, size, |sycl| {
            not_null(event, "ERef")?;
            sycl.events()?.get(sycl, event)
        })
    }
}

/// Opens handle data of an event of another process: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes; `context` must be null or a reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_open(data: *const c_char, size: usize, context: ContextRef) -> EventRef {
    reported("urscope_ipc_event_open", || {
        not_null(data, "HandleData")?;
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.open(sycl, slice::from_raw_parts(data.cast::<u8>(), size), context) }
    })
    .unwrap_or(ptr::null())
}

/// Physical memory of [`urscope_ipc_physical_create`] or [`urscope_ipc_physical_open`].
pub type PhysicalRef = *mut c_void;

/// The memory behind a reference.
///
/// # Safety
///
/// It must be null or a reference that has not been deleted.
unsafe fn physical<'a>(memory: PhysicalRef) -> Result<&'a Shared, String> {
    // SAFETY: the caller's promise.
    unsafe { memory.cast::<Shared>().as_ref() }.ok_or_else(|| "PRef is null".to_owned())
}

fn given_out(memory: Option<Shared>) -> PhysicalRef {
    memory.map_or(ptr::null_mut(), |memory| Box::into_raw(Box::new(memory)).cast())
}

/// Of what the size of physical memory, and of each part that is mapped, must be a multiple, in bytes; 0 if that could not be found out.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_granularity(context: ContextRef, device: DeviceRef) -> usize {
    reported("urscope_ipc_physical_granularity", || {
        not_null(context, "CRef")?;
        not_null(device, "DRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.granularity(sycl, context, device) }
    })
    .unwrap_or(0)
}

/// Makes physical memory that can be shared, or null. [`urscope_ipc_physical_delete`] ends it.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_create(
    context: ContextRef,
    device: DeviceRef,
    nbytes: usize,
) -> PhysicalRef {
    given_out(reported("urscope_ipc_physical_create", || {
        not_null(context, "CRef")?;
        not_null(device, "DRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.create(sycl, context, device, nbytes) }
    }))
}

/// The size of physical memory in bytes; 0 if that could not be found out.
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_size(memory: PhysicalRef) -> usize {
    reported("urscope_ipc_physical_size", || {
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        sycl.physical_memory()?.size(sycl, unsafe { physical(memory)? })
    })
    .unwrap_or(0)
}

/// Gets handle data for physical memory, as [`DPCTLIPCMem_GetHandle`] does for USM.
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted, `context` null or its context; `data` and `size` must be null or
/// writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_get(
    memory: PhysicalRef,
    context: ContextRef,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("urscope_ipc_physical_get", Kind::PhysicalMemory, context, data, size, |sycl| {
            sycl.physical_memory()?.get(sycl, physical(memory)?)
        })
    }
}

/// Opens handle data of physical memory of another process, or null. [`urscope_ipc_physical_delete`] closes it.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes; `context` and `device` must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_open(
    data: *const c_char,
    size: usize,
    context: ContextRef,
    device: DeviceRef,
) -> PhysicalRef {
    given_out(reported("urscope_ipc_physical_open", || {
        not_null(data, "HandleData")?;
        not_null(context, "CRef")?;
        not_null(device, "DRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = slice::from_raw_parts(data.cast::<u8>(), size);
            sycl.physical_memory()?.open(sycl, bytes, context, device)
        }
    }))
}

/// Maps a part of physical memory at free addresses, for reading and writing: the first of them, or null. The memory must live until
/// [`urscope_ipc_physical_unmap`].
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted, and `context` null or its context.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_map(
    memory: PhysicalRef,
    context: ContextRef,
    offset: usize,
    nbytes: usize,
) -> *mut c_void {
    reported("urscope_ipc_physical_map", || {
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.map(sycl, physical(memory)?, context, offset, nbytes) }
    })
    .map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// Unmaps what [`urscope_ipc_physical_map`] mapped, and frees the addresses. [`urscope_ipc_last_error`] says whether that failed.
///
/// # Safety
///
/// The arguments must be those of the map, and nothing may use the addresses any more.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_unmap(pointer: *mut c_void, nbytes: usize, context: ContextRef) {
    reported("urscope_ipc_physical_unmap", || {
        not_null(pointer, "MappedPtr")?;
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.unmap(sycl, pointer.expose_provenance(), nbytes, context) }
    });
}

/// Gives a reference to physical memory back: opened memory is closed, own memory is freed. Null is allowed.
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted. Nothing of it may be mapped.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_delete(memory: PhysicalRef) {
    message::clear();
    if !memory.is_null() {
        // SAFETY: `given_out` made it, and the caller gives it back once.
        drop(unsafe { Box::from_raw(memory.cast::<Shared>()) });
    }
}

/// Why the calling thread's last call of this library failed: text that ends with a null byte and is valid until the thread's next
/// call; null if the call did not fail.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_last_error() -> *const c_char {
    message::last()
}
