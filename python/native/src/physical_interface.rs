//! The C functions for physical memory, which dpctl has no model for.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr, slice,
};

use crate::{
    get,
    handles::Kind,
    message, not_null, reported,
    shared::Shared,
    sycl::{ContextRef, DeviceRef, sycl},
};

/// Physical memory of [`urscope_ipc_physical_create`] or [`urscope_ipc_physical_open`].
pub type PhysicalRef = *mut c_void;

/// The memory of a reference.
///
/// # Safety
///
/// It must be null or a reference that has not been deleted.
unsafe fn physical<'a>(memory: PhysicalRef) -> Result<&'a Shared, String> {
    // SAFETY: the caller's promise.
    unsafe { memory.cast::<Shared>().as_ref() }.ok_or_else(|| "PRef is null".to_owned())
}

fn into_reference(memory: Option<Shared>) -> PhysicalRef {
    memory.map_or(ptr::null_mut(), |memory| Box::into_raw(Box::new(memory)).cast())
}

/// The granularity in bytes: the size of physical memory, and of each mapped part, must be a multiple
/// of it. 0 if it could not be determined.
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
    into_reference(reported("urscope_ipc_physical_create", || {
        not_null(context, "CRef")?;
        not_null(device, "DRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.physical_memory()?.create(sycl, context, device, nbytes) }
    }))
}

/// The size of physical memory in bytes; 0 if it could not be determined.
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

/// Gets handle data for physical memory, as [`crate::DPCTLIPCMem_GetHandle`] does for USM.
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted, `context` null or its context;
/// `data` and `size` must be null or writable.
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
    into_reference(reported("urscope_ipc_physical_open", || {
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

/// Maps a part of physical memory at free addresses, for reading and writing. Returns the first
/// address, or null. The memory must live until [`urscope_ipc_physical_unmap`].
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

/// Unmaps what [`urscope_ipc_physical_map`] mapped, and frees the addresses.
/// [`crate::urscope_ipc_last_error`] says whether that failed.
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

/// Deletes a reference to physical memory: opened memory is closed, own memory is freed. Null is allowed.
///
/// # Safety
///
/// `memory` must be null or a reference that has not been deleted. Nothing of it may be mapped.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_physical_delete(memory: PhysicalRef) {
    message::clear();
    if !memory.is_null() {
        // SAFETY: `into_reference` made it, and the caller gives it back once.
        drop(unsafe { Box::from_raw(memory.cast::<Shared>()) });
    }
}
