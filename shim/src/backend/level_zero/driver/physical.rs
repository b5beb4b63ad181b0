//! Physical memory that the driver shares.

use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use urscope_schema::api::{ResultCode, role::Pointer};

use super::structs::{ExternalMemory, stype};
use super::{Driver, PhysicalMemDesc, PhysicalMemProperties, ZeHandle};
use crate::raw::args::Arg;

impl Driver {
    /// `zePhysicalMemCreate`, for memory that can be exported.
    pub(crate) fn make_physical(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        size: usize,
    ) -> Result<ZeHandle, ResultCode> {
        self.physical(context, device, size, &ExternalMemory::new(stype::EXTERNAL_MEMORY_EXPORT_DESC, -1))
    }

    /// `zePhysicalMemCreate`, for memory that another process exported. It is not specified whether the driver takes
    /// the descriptor.
    pub(crate) fn import_physical(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        size: usize,
        descriptor: BorrowedFd<'_>,
    ) -> Result<ZeHandle, ResultCode> {
        let external = ExternalMemory::new(stype::EXTERNAL_MEMORY_IMPORT_FD, descriptor.as_raw_fd());
        self.physical(context, device, size, &external)
    }

    fn physical(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        size: usize,
        external: &ExternalMemory,
    ) -> Result<ZeHandle, ResultCode> {
        let next = (&raw const *external).cast();
        let desc = PhysicalMemDesc { stype: stype::PHYSICAL_MEM_DESC, next, flags: 0, size };
        let mut made = ZeHandle::NULL;
        // SAFETY: the description and the out-parameter are live variables.
        unsafe { self.create_physical(context, device, &raw const desc, &raw mut made) }?;
        made.not_null()
    }

    /// `zePhysicalMemGetProperties`, for a descriptor. Its owner is not specified.
    pub(crate) fn export_physical(&self, context: ZeHandle, physical: ZeHandle) -> Result<RawFd, ResultCode> {
        let mut external = ExternalMemory::new(stype::EXTERNAL_MEMORY_EXPORT_FD, -1);
        let next = (&raw mut external).cast();
        let mut properties = PhysicalMemProperties { stype: stype::PHYSICAL_MEM_PROPERTIES, next, id: 0, size: 0 };
        // SAFETY: the out-parameter and what it chains to are live variables.
        unsafe { self.physical_properties(context, physical, &raw mut properties) }?;
        // SAFETY: a live variable, read as volatile because the driver wrote to it through the chain.
        let descriptor = unsafe { (&raw const external.descriptor).read_volatile() };
        if descriptor < 0 { Err(ResultCode::INVALID_VALUE) } else { Ok(descriptor) }
    }

    /// `zePhysicalMemDestroy`
    pub(crate) fn end_physical(&self, context: ZeHandle, physical: ZeHandle) {
        // SAFETY: the driver made both.
        let _ = unsafe { self.destroy_physical(context, physical) };
    }

    /// `zeVirtualMemMap`, at an address that the program reserved.
    pub(crate) fn map(
        &self,
        context: ZeHandle,
        at: Arg<Pointer>,
        size: usize,
        physical: ZeHandle,
        offset: usize,
        access: u32,
    ) -> Result<(), ResultCode> {
        let at = std::ptr::with_exposed_provenance(at.get().0);
        // SAFETY: the address is the caller's of `urVirtualMemMap`, who reserved it.
        unsafe { self.map_physical(context, at, size, physical, offset, access) }
    }

    /// The smallest size of physical memory in bytes.
    pub(crate) fn least_physical(&self, context: ZeHandle, device: ZeHandle) -> Result<usize, ResultCode> {
        let mut page = 0;
        // SAFETY: the out-parameter is a live variable.
        unsafe { self.page_size(context, device, 1, &raw mut page) }?;
        Ok(page)
    }
}
