//! Entry points that allocate, free and describe memory.
//!
//! Must never free memory that was opened from an IPC handle, and must return a result for any pointer.

use std::sync::Arc;

use super::allocation::{Allocation, Kind, Origin};
use super::{lookup, physical::check_type, reservation, shareable::Shareable};
use crate::discovery::{context::Context, device::Device, driver};
use crate::ffi::handles::Handle;
use crate::ffi::layout::{
    DeviceMemAllocDesc, Extensible, ExternalMemoryExportDesc, ExternalMemoryExportFd, ExternalMemoryImportFd,
    HostMemAllocDesc, MemoryAllocationProperties, MemoryFreeExtDesc, stype,
};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Address, In, Out, Pointer};
use crate::platform::log;
use crate::shared_memory::import::{Import, ImportError};
use crate::shared_memory::{PAGE, exports};

/// `ZE_MEMORY_TYPE_UNKNOWN`.
const UNKNOWN: u32 = 0;

/// `zeMemAllocShared` (ze_api.h). The device may be NULL.
pub extern "C" fn alloc_shared(
    context: Handle<Context>,
    device_desc: In<DeviceMemAllocDesc>,
    host_desc: In<HostMemAllocDesc>,
    size: usize,
    alignment: usize,
    device: Handle<Device>,
    pointer: Out<Pointer>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get_optional()?;
        host_desc.check()?;
        let requests = Requests::from_descriptor(device_desc)?;
        pointer.check()?;
        pointer.write(Pointer::to(allocate(Kind::Shared, device, requests, size, alignment)?))
    })
}

/// `zeMemAllocDevice` (ze_api.h).
pub extern "C" fn alloc_device(
    context: Handle<Context>,
    desc: In<DeviceMemAllocDesc>,
    size: usize,
    alignment: usize,
    device: Handle<Device>,
    pointer: Out<Pointer>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        let requests = Requests::from_descriptor(desc)?;
        pointer.check()?;
        pointer.write(Pointer::to(allocate(Kind::Device, Some(device), requests, size, alignment)?))
    })
}

/// `zeMemAllocHost` (ze_api.h).
pub extern "C" fn alloc_host(
    context: Handle<Context>,
    desc: In<HostMemAllocDesc>,
    size: usize,
    alignment: usize,
    pointer: Out<Pointer>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let requests = Requests::from_descriptor(desc)?;
        pointer.check()?;
        pointer.write(Pointer::to(allocate(Kind::Host, None, requests, size, alignment)?))
    })
}

/// `zeMemFree` (ze_api.h). `INVALID_ARGUMENT` for any address that an allocation call did not return.
pub extern "C" fn free(context: Handle<Context>, pointer: Address) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        pointer.check()?;
        Allocation::free(pointer.number())
    })
}

impl Allocation {
    /// Allocates memory of `size` bytes, all zero, and returns its address: `UNSUPPORTED_SIZE`, `OUT_OF_HOST_MEMORY` or
    /// `OUT_OF_DEVICE_MEMORY`.
    pub fn allocate(kind: Kind, device: Option<Arc<Device>>, size: usize) -> Outcome<usize> {
        allocate(kind, device, Requests::default(), size, 0)
    }

    /// Frees memory that was allocated or imported. Work that was submitted keeps its pages. `INVALID_ARGUMENT` for any
    /// other address.
    pub fn free(address: usize) -> Outcome {
        let freed = lookup::remove(address, |origin| !matches!(origin, Origin::Opened(_)))?;
        // Work in flight may keep the pages for a while, but no process may open them any more.
        exports::revoke(freed.id);
        Ok(())
    }
}

/// `zeMemFreeExt` (ze_api.h). Both policies have the same effect: work in flight keeps the memory until it has
/// completed.
pub extern "C" fn free_ext(context: Handle<Context>, desc: In<MemoryFreeExtDesc>, pointer: Address) -> ZeResult {
    match desc.check() {
        Ok(()) => free(context, pointer),
        Err(null) => null,
    }
}

/// `zeMemGetAllocProperties` (ze_api.h). For a pointer that is not memory of the device, also NULL, the type is
/// "unknown" and there is no device, as with Intel's driver: Intel MPI asks about buffers that a rank does not have. A
/// descriptor that the chain requests is that of the memory's file, or of the file of the physical memory that is
/// mapped there. It still belongs to the device. `UNSUPPORTED_FEATURE` if the file holds other memory, too, and for
/// memory that was opened or imported.
pub extern "C" fn get_alloc_properties(
    context: Handle<Context>,
    pointer: Address,
    properties: Out<MemoryAllocationProperties>,
    device: Out<Handle<Device>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let found = describe(pointer.number());
        properties.edit(|out| {
            out.kind = found.as_ref().map_or(UNKNOWN, |found| found.kind as u32);
            out.id = found.as_ref().map_or(0, |found| found.id);
            out.page_size = if found.is_some() { PAGE as u64 } else { 0 };
        })?;
        if let Some(export) = properties.next_of::<ExternalMemoryExportFd>() {
            check_type(export.read()?.flags)?;
            let memory = Shareable::at(pointer.number()).ok_or(ZeResult::UNSUPPORTED_FEATURE)?;
            let span = memory.span().ok_or(ZeResult::UNSUPPORTED_FEATURE)?;
            span.describe(memory.description())?;
            export.edit(|out| out.fd = span.descriptor())?;
        }
        let owner = found.as_ref().and_then(|found| found.device.as_ref());
        device.write_optional(owner.map_or(Handle::NULL, Handle::from_object));
        Ok(())
    })
}

/// `zeMemGetAddressRange` (ze_api.h). Base and size of the allocation, or of the mapping of physical memory, that
/// contains the pointer.
pub extern "C" fn get_address_range(
    context: Handle<Context>,
    pointer: Address,
    base: Out<Pointer>,
    size: Out<usize>,
) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        let found = describe(pointer.number()).ok_or(ZeResult::INVALID_ARGUMENT)?;
        base.write_optional(Pointer::to(found.base));
        size.write_optional(found.size);
        Ok(())
    })
}

/// The memory at an address.
struct Description {
    kind: Kind,
    id: u64,
    device: Option<Arc<Device>>,
    base: usize,
    size: usize,
}

/// The allocation or the mapping that contains an address. Reserved addresses without memory have none.
fn describe(address: usize) -> Option<Description> {
    if let Some(found) = lookup::find(address) {
        let base = found.base();
        let size = found.size;
        return Some(Description { kind: found.kind, id: found.id, device: found.device.clone(), base, size });
    }
    let view = reservation::view(address)?;
    let physical = view.physical;
    let base = view.base;
    let size = view.length;
    Some(Description { kind: physical.kind, id: physical.id, device: physical.device.clone(), base, size })
}

/// What the `pNext` chain of an allocation descriptor requests.
#[derive(Clone, Copy, Default)]
struct Requests {
    /// Import the memory of this descriptor.
    import: Option<i32>,
    /// Make the memory exportable, with a file of its own.
    export: bool,
    /// Allow more than the largest allocation size.
    any_size: bool,
}

impl Requests {
    fn from_descriptor<T: Extensible>(desc: In<T>) -> Outcome<Self> {
        desc.check()?;
        let import = match desc.next_of::<ExternalMemoryImportFd>() {
            Some(import) => {
                let ExternalMemoryImportFd { flags, fd, .. } = import.read()?;
                check_type(flags)?;
                Some(fd)
            }
            None => None,
        };
        let export = desc.next_of::<ExternalMemoryExportDesc>();
        if let Some(export) = export {
            check_type(export.read()?.flags)?;
        }
        Ok(Self {
            import,
            export: export.is_some(),
            any_size: desc.has_next(stype::RELAXED_ALLOCATION_LIMITS_EXP_DESC),
        })
    }
}

/// Allocates or imports memory, and returns its address.
fn allocate(
    kind: Kind,
    device: Option<Arc<Device>>,
    requests: Requests,
    size: usize,
    alignment: usize,
) -> Outcome<usize> {
    if alignment != 0 && !alignment.is_power_of_two() {
        // Not refused: arguments are checked by the validation layer. Level Zero's conformance tests use 12,288.
        log::note(&format!("an alignment of {alignment} bytes is no power of two, as the specification wants it"));
    }
    if let Some(number) = requests.import {
        return Ok(lookup::insert(import(kind, device, number, size, alignment)?));
    }
    let (budget, exhausted) = driver::budget(device.as_ref());
    if size == 0 || (!requests.any_size && size as u64 > budget.limit) {
        return Err(ZeResult::UNSUPPORTED_SIZE);
    }
    let budget = Arc::clone(budget);
    let charge = |bytes| budget.charge(bytes).ok_or(exhausted);
    Ok(lookup::insert(Allocation::new(kind, device, size, alignment, requests.export, charge)?))
}

/// The memory of a descriptor of this process, which still belongs to the caller: `INVALID_ARGUMENT`
/// for a descriptor of anything but exported memory and for that of a device that is no peer,
/// `UNSUPPORTED_SIZE` if the memory is smaller. It belongs to the budget of its exporter.
fn import(kind: Kind, device: Option<Arc<Device>>, number: i32, size: usize, alignment: usize) -> Outcome<Allocation> {
    let opened = Import::by_descriptor(number, alignment).and_then(|(import, found)| {
        Device::reach(device.as_ref(), found.device).map_err(ImportError::Refused)?;
        Ok(import)
    });
    let import = opened.map_err(|error| match error {
        ImportError::Refused(reason) => {
            ZeResult::INVALID_ARGUMENT.because(|| format!("cannot import memory: {reason}"))
        }
        ImportError::Host(code) => code,
    })?;
    if size == 0 || size > import.mapping.length() {
        return Err(ZeResult::UNSUPPORTED_SIZE);
    }
    Ok(Allocation::imported(import, kind, size, device))
}
