//! Entry points of virtual memory: reserve address space, map physical memory in it, and set the access.
//!
//! All check in this order: handles and pointers, enumerations, sizes, alignments, and then the range itself. Must
//! never change anything when they return an error.

use super::physical::PhysicalMemory;
use super::reservation::Reservation;
use crate::discovery::{context::Context, device::Device};
use crate::ffi::result::{ZeResult, call, call_teardown};
use crate::ffi::{Address, Out, Pointer, handles::Handle};
use crate::shared_memory::{PAGE, mapping::Access};

/// `zeVirtualMemQueryPageSize` (ze_api.h). The same for all sizes, as with Intel's driver also for 0,
/// which Level Zero's conformance tests ask for.
pub extern "C" fn query_page_size(
    context: Handle<Context>,
    device: Handle<Device>,
    _size: usize,
    page_size: Out<usize>,
) -> ZeResult {
    call(|| {
        context.get()?;
        device.get()?;
        page_size.write(PAGE)
    })
}

/// `zeVirtualMemReserve` (ze_api.h). At `start` if that is free, elsewhere otherwise. NULL means no preference.
pub extern "C" fn reserve(context: Handle<Context>, start: Address, size: usize, pointer: Out<Pointer>) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        pointer.write(Pointer::to(Reservation::reserve(start.number(), size)?))
    })
}

/// `zeVirtualMemFree` (ze_api.h). Unmaps what is mapped. `INVALID_ARGUMENT` for anything but a whole reservation.
pub extern "C" fn free(context: Handle<Context>, pointer: Address, size: usize) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        pointer.check()?;
        Reservation::free(pointer.number(), size)
    })
}

/// `zeVirtualMemMap` (ze_api.h). Physical memory may be mapped at several addresses. `INVALID_ARGUMENT` for a range
/// that is not reserved, is mapped already, or exceeds the physical memory.
pub extern "C" fn map(
    context: Handle<Context>,
    pointer: Address,
    size: usize,
    physical: Handle<PhysicalMemory>,
    offset: usize,
    access: u32,
) -> ZeResult {
    call(|| {
        context.get()?;
        let physical = physical.get()?;
        pointer.check()?;
        let access = Access::from_number(access).ok_or(ZeResult::INVALID_ENUMERATION)?;
        Reservation::map(pointer.number(), size, physical, offset, access)
    })
}

/// `zeVirtualMemUnmap` (ze_api.h). Accepts any range of whole pages: `INVALID_ARGUMENT` unless all of it is mapped.
pub extern "C" fn unmap(context: Handle<Context>, pointer: Address, size: usize) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        pointer.check()?;
        Reservation::unmap(pointer.number(), size)
    })
}

/// `zeVirtualMemSetAccessAttribute` (ze_api.h). Accepts any range of whole pages: `INVALID_ARGUMENT` unless all of it
/// is mapped.
pub extern "C" fn set_access_attribute(
    context: Handle<Context>,
    pointer: Address,
    size: usize,
    access: u32,
) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        let access = Access::from_number(access).ok_or(ZeResult::INVALID_ENUMERATION)?;
        Reservation::set_access(pointer.number(), size, access)
    })
}

/// `zeVirtualMemGetAccessAttribute` (ze_api.h). The access of the first page, and how many bytes of the range have the
/// same.
pub extern "C" fn get_access_attribute(
    context: Handle<Context>,
    pointer: Address,
    size: usize,
    access: Out<u32>,
    out_size: Out<usize>,
) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        access.check()?;
        out_size.check()?;
        let (found, length) = Reservation::access(pointer.number(), size)?;
        access.write(found as u32)?;
        out_size.write(length)
    })
}
