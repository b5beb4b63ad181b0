//! Entry points that make, free and describe memory.
//!
//! Must never free what was opened from an IPC handle, and must answer for any pointer, also one that is not ours.

use std::ffi::c_void;
use std::sync::Arc;

use super::allocation::{Allocation, Kind, Origin};
use super::{PAGE, exports, map};
use crate::context::Context;
use crate::device::Device;
use crate::layout::memory::{DeviceMemAllocDesc, HostMemAllocDesc, MemoryAllocationProperties, MemoryFreeExtDesc};
use crate::layout::stype;
use crate::registry::Handle;
use crate::result::{Answer, ZeResult, answer, answer_end};
use crate::{driver, ffi};

/// `ZE_MEMORY_TYPE_UNKNOWN`.
const UNKNOWN: u32 = 0;

/// `zeMemAllocShared` (ze_api.h). A NULL device is allowed.
pub extern "C" fn alloc_shared(
    context: Handle<Context>,
    device_desc: *const DeviceMemAllocDesc,
    host_desc: *const HostMemAllocDesc,
    size: usize,
    alignment: usize,
    device: Handle<Device>,
    pointer: *mut *mut c_void,
) -> ZeResult {
    answer(|| {
        context.get()?;
        let device = device.get_optional()?;
        ffi::read(host_desc)?;
        let chain = ffi::read(device_desc)?.p_next;
        place(Kind::Shared, device, chain, size, alignment, pointer)
    })
}

/// `zeMemAllocDevice` (ze_api.h).
pub extern "C" fn alloc_device(
    context: Handle<Context>,
    desc: *const DeviceMemAllocDesc,
    size: usize,
    alignment: usize,
    device: Handle<Device>,
    pointer: *mut *mut c_void,
) -> ZeResult {
    answer(|| {
        context.get()?;
        let device = device.get()?;
        let chain = ffi::read(desc)?.p_next;
        place(Kind::Device, Some(device), chain, size, alignment, pointer)
    })
}

/// `zeMemAllocHost` (ze_api.h).
pub extern "C" fn alloc_host(
    context: Handle<Context>,
    desc: *const HostMemAllocDesc,
    size: usize,
    alignment: usize,
    pointer: *mut *mut c_void,
) -> ZeResult {
    answer(|| {
        context.get()?;
        let chain = ffi::read(desc)?.p_next;
        place(Kind::Host, None, chain, size, alignment, pointer)
    })
}

/// `zeMemFree` (ze_api.h): `INVALID_ARGUMENT` for anything but the address that an allocation call gave.
pub extern "C" fn free(context: Handle<Context>, pointer: *mut c_void) -> ZeResult {
    answer_end(|| {
        context.get()?;
        if pointer.is_null() {
            return Err(ZeResult::INVALID_NULL_POINTER);
        }
        let freed = map::remove(pointer as usize, |origin| matches!(origin, Origin::Own { .. }))?;
        // Work in flight may keep the pages for a while, but nobody shall open them any more.
        exports::end(freed.id);
        Ok(())
    })
}

/// `zeMemFreeExt` (ze_api.h). Both policies come to the same: work in flight keeps the memory until it is done.
pub extern "C" fn free_ext(context: Handle<Context>, desc: *const MemoryFreeExtDesc, pointer: *mut c_void) -> ZeResult {
    if desc.is_null() {
        return ZeResult::INVALID_NULL_POINTER;
    }
    free(context, pointer)
}

/// `zeMemGetAllocProperties` (ze_api.h). A pointer that is not ours has type "unknown" and no device.
pub extern "C" fn get_alloc_properties(
    context: Handle<Context>,
    pointer: *const c_void,
    properties: *mut MemoryAllocationProperties,
    device: *mut Handle<Device>,
) -> ZeResult {
    answer(|| {
        context.get()?;
        if pointer.is_null() {
            return Err(ZeResult::INVALID_NULL_POINTER);
        }
        let found = map::find(pointer as usize);
        ffi::edit(properties, |out| {
            out.kind = found.as_ref().map_or(UNKNOWN, |allocation| allocation.kind as u32);
            out.id = found.as_ref().map_or(0, |allocation| allocation.id);
            out.page_size = if found.is_some() { PAGE as u64 } else { 0 };
        })?;
        // Memory shares its files with other memory, so a descriptor of its own is not to be had.
        if ffi::find::<c_void>(ffi::read(properties)?.p_next, stype::EXTERNAL_MEMORY_EXPORT_FD).is_some() {
            return Err(ZeResult::UNSUPPORTED_FEATURE);
        }
        let owner = found.as_ref().and_then(|allocation| allocation.device.as_ref());
        ffi::write_optional(device, owner.map_or(Handle::NULL, Handle::of));
        Ok(())
    })
}

/// `zeMemGetAddressRange` (ze_api.h): base and size of the allocation that the pointer lies in.
pub extern "C" fn get_address_range(
    context: Handle<Context>,
    pointer: *const c_void,
    base: *mut *mut c_void,
    size: *mut usize,
) -> ZeResult {
    answer(|| {
        context.get()?;
        if pointer.is_null() {
            return Err(ZeResult::INVALID_NULL_POINTER);
        }
        let found = map::find(pointer as usize).ok_or(ZeResult::INVALID_ARGUMENT)?;
        ffi::write_optional(base, found.base() as *mut c_void);
        ffi::write_optional(size, found.size);
        Ok(())
    })
}

fn place(
    kind: Kind,
    device: Option<Arc<Device>>,
    chain: *const c_void,
    size: usize,
    alignment: usize,
    pointer: *mut *mut c_void,
) -> Answer {
    if pointer.is_null() {
        return Err(ZeResult::INVALID_NULL_POINTER);
    }
    if alignment != 0 && !alignment.is_power_of_two() {
        return Err(ZeResult::UNSUPPORTED_ALIGNMENT);
    }
    // Importing a foreign descriptor as memory cannot be passed over like an unknown hint.
    if ffi::find::<c_void>(chain, stype::EXTERNAL_MEMORY_IMPORT_FD).is_some() {
        return Err(ZeResult::UNSUPPORTED_FEATURE);
    }
    let relaxed = ffi::find::<c_void>(chain, stype::RELAXED_ALLOCATION_LIMITS_EXP_DESC).is_some();
    let (budget, exhausted) = match &device {
        Some(device) => (&device.memory, ZeResult::OUT_OF_DEVICE_MEMORY),
        None => (driver::host_memory(), ZeResult::OUT_OF_HOST_MEMORY),
    };
    if size == 0 || (!relaxed && size as u64 > budget.limit()) {
        return Err(ZeResult::UNSUPPORTED_SIZE);
    }
    let budget = Arc::clone(budget);
    let charge = |bytes| budget.charge(bytes).ok_or(exhausted);
    let allocation = Allocation::new(kind, device, size, alignment, charge)?;
    ffi::write(pointer, map::insert(allocation) as *mut c_void)
}
