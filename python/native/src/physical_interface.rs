//! The C functions for physical memory, which dpctl has no model for.

use std::ffi::{c_char, c_int, c_void};
use std::{ptr, slice};

use crate::references::{ContextRef, DeviceRef, given};
use crate::{get, handles::Kind, message, not_null, reported, shared::Shared, sycl::sycl};

/// The granularity in bytes: the size of physical memory, and of each mapped part, must be a multiple
/// of it. 0 if it could not be determined.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_physical_granularity(context: Option<ContextRef>, device: Option<DeviceRef>) -> usize {
    reported("urscope_ipc_physical_granularity", || {
        let context = given(context, "CRef")?;
        let device = given(device, "DRef")?;
        let sycl = sycl()?;
        sycl.physical_memory()?.granularity(context, device)
    })
    .unwrap_or(0)
}

/// Makes physical memory that can be shared, or null. [`urscope_ipc_physical_delete`] ends it.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_physical_create(
    context: Option<ContextRef>,
    device: Option<DeviceRef>,
    nbytes: usize,
) -> Option<Box<Shared>> {
    reported("urscope_ipc_physical_create", || {
        let context = given(context, "CRef")?;
        let device = given(device, "DRef")?;
        let sycl = sycl()?;
        sycl.physical_memory()?.create(context, device, nbytes)
    })
    .map(Box::new)
}

/// The size of physical memory in bytes; 0 if it could not be determined.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_physical_size(memory: Option<&Shared>) -> usize {
    reported("urscope_ipc_physical_size", || {
        let sycl = sycl()?;
        sycl.physical_memory()?.size(given(memory, "PRef")?)
    })
    .unwrap_or(0)
}

/// Gets handle data for physical memory, as [`crate::DPCTLIPCMem_GetHandle`] does for USM.
///
/// # Safety
///
/// `data` and `size` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_get(
    memory: Option<&Shared>,
    context: Option<ContextRef>,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("urscope_ipc_physical_get", Kind::PhysicalMemory, context, data, size, |sycl, _| {
            sycl.physical_memory()?.get(given(memory, "PRef")?)
        })
    }
}

/// Opens handle data of physical memory of another process, or null. [`urscope_ipc_physical_delete`] closes it.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_open(
    data: *const c_char,
    size: usize,
    context: Option<ContextRef>,
    device: Option<DeviceRef>,
) -> Option<Box<Shared>> {
    reported("urscope_ipc_physical_open", || {
        not_null(data, "HandleData")?;
        let context = given(context, "CRef")?;
        let device = given(device, "DRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), size) };
        sycl.physical_memory()?.open(bytes, context, device)
    })
    .map(Box::new)
}

/// Maps a part of physical memory at free addresses, for reading and writing. Returns the first
/// address, or null. The memory must live until [`urscope_ipc_physical_unmap`].
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_physical_map(
    memory: Option<&Shared>,
    context: Option<ContextRef>,
    offset: usize,
    nbytes: usize,
) -> *mut c_void {
    reported("urscope_ipc_physical_map", || {
        let context = given(context, "CRef")?;
        let sycl = sycl()?;
        sycl.physical_memory()?.map(given(memory, "PRef")?, context, offset, nbytes)
    })
    .map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// Unmaps what [`urscope_ipc_physical_map`] mapped, and frees the addresses.
/// [`crate::urscope_ipc_last_error`] says whether that failed.
///
/// # Safety
///
/// The arguments must be those of the map, and nothing may use the addresses any more.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_unmap(pointer: *mut c_void, nbytes: usize, context: Option<ContextRef>) {
    reported("urscope_ipc_physical_unmap", || {
        not_null(pointer, "MappedPtr")?;
        let context = given(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.unmap(pointer.expose_provenance(), nbytes, context) }
    });
}

/// Deletes a reference to physical memory: opened memory is closed, own memory is freed. Null is allowed. Nothing of it
/// may be mapped.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_physical_delete(memory: Option<Box<Shared>>) {
    message::clear();
    drop(memory);
}
