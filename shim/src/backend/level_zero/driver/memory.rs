//! Memory that the driver shares: allocations, handles for them, and mappings.

use std::ptr::null_mut;

use urscope_schema::api::ResultCode;

use super::{super::handle_data::NATIVE_SIZE, AllocationProperties, Driver, IpcHandle, ZeHandle, structs::stype};

/// An allocation of the driver's, distinguished from a later one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    /// Where it begins.
    pub(crate) base: usize,
    /// Its length in bytes.
    pub(crate) size: usize,
    /// The driver's id of the allocation; 0 if it gives none.
    pub(crate) id: u64,
}

/// The beginning of a mapping that the driver made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedBase(usize);

impl MappedBase {
    pub(crate) const fn address(self) -> usize {
        self.0
    }
}

impl Driver {
    /// Whether the driver can share memory.
    pub(crate) fn shares_memory(&self) -> bool {
        self.get_mem.is_some() && self.open_mem.is_some() && self.address_range.is_some()
    }

    /// The allocation that `pointer` lies in; an error if it lies in none. The driver only looks the address up.
    pub(crate) fn block(&self, context: ZeHandle, pointer: usize) -> Result<Block, ResultCode> {
        let mut base = null_mut();
        let mut size = 0;
        let mut device = ZeHandle::NULL;
        let pointer = std::ptr::with_exposed_provenance(pointer);
        // SAFETY: the out-parameters are live variables, and any address may be asked for.
        unsafe { self.address_range(context, pointer, &raw mut base, &raw mut size) }?;
        let mut properties = AllocationProperties {
            stype: stype::MEMORY_ALLOCATION_PROPERTIES,
            next: null_mut(),
            kind: 0,
            id: 0,
            page_size: 0,
        };
        // SAFETY: as above.
        let known = unsafe { self.properties(context, pointer, &raw mut properties, &raw mut device) };
        let id = known.map_or(0, |()| properties.id);
        Ok(Block { base: base.expose_provenance(), size, id })
    }

    /// `zeMemGetIpcHandle`
    pub(crate) fn export(&self, context: ZeHandle, block: Block) -> Result<IpcHandle, ResultCode> {
        let mut handle = IpcHandle([0; NATIVE_SIZE]);
        // SAFETY: the out-parameter is a live variable; the driver looks the address up.
        unsafe { self.get_mem(context, std::ptr::with_exposed_provenance(block.base), &raw mut handle) }?;
        Ok(handle)
    }

    /// `zeMemPutIpcHandle`. A driver without it ends the handle when the memory is freed.
    pub(crate) fn end_export(&self, context: ZeHandle, handle: IpcHandle) {
        // SAFETY: the driver looks the handle up.
        let _ = unsafe { self.put_mem(context, handle) };
    }

    /// `zeMemOpenIpcHandle`
    pub(crate) fn open(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        handle: IpcHandle,
    ) -> Result<MappedBase, ResultCode> {
        let mut base = null_mut();
        // SAFETY: the out-parameter is a live variable. A handle may hold anything: the driver checks it.
        unsafe { self.open_mem(context, device, handle, 0, &raw mut base) }?;
        if base.is_null() { Err(ResultCode::UNKNOWN) } else { Ok(MappedBase(base.expose_provenance())) }
    }

    /// `zeMemCloseIpcHandle`
    pub(crate) fn close(&self, context: ZeHandle, base: MappedBase) -> Result<(), ResultCode> {
        // SAFETY: the driver made this mapping.
        unsafe { self.close_mem(context, std::ptr::with_exposed_provenance(base.0)) }
    }
}
