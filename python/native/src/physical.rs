//! The functions of libsycl for physical memory, its addresses, and its sharing between processes (from 2026.2).

use std::ptr;

use crate::references::{ContextRef, DeviceRef};
use crate::sycl::{HandleData, functions};
use crate::{guarded, shared::Shared};

/// `address_access_mode::read_write`
const READ_WRITE: usize = 2;
/// `granularity_mode::recommended`
const RECOMMENDED: usize = 1;

functions! {
    /// The functions.
    PhysicalMemory:
    create = c"_ZN4sycl3_V13ext6oneapi12experimental12physical_mem6createERKNS0_6deviceERKNS0_7contextEmb";
    size = c"_ZNK4sycl3_V13ext6oneapi12experimental12physical_mem4sizeEv";
    map = c"_ZNK4sycl3_V13ext6oneapi12experimental12physical_mem3mapEmmNS3_19address_access_modeEm";
    granularity = c"_ZN4sycl3_V13ext6oneapi12experimental19get_mem_granularityERKNS0_6deviceERKNS0_7contextENS3_16granularity_modeE";
    reserve = c"_ZN4sycl3_V13ext6oneapi12experimental19reserve_virtual_memEmmRKNS0_7contextE";
    unreserve = c"_ZN4sycl3_V13ext6oneapi12experimental16free_virtual_memEmmRKNS0_7contextE";
    unmap = c"_ZN4sycl3_V13ext6oneapi12experimental5unmapEPKvmRKNS0_7contextE";
    get = c"_ZN4sycl3_V13ext6oneapi12experimental3ipc15physical_memory3getERNS3_12physical_memE";
    put = c"_ZN4sycl3_V13ext6oneapi12experimental3ipc15physical_memory3putERNS4_6handleERKNS0_7contextE";
    open = c"_ZN4sycl3_V16detail24openIPCPhysicalMemHandleEPKSt4bytemRKNS0_7contextERKNS0_6deviceE";
}

impl PhysicalMemory {
    /// `physical_mem` with `enable_ipc`
    pub(crate) fn create(&self, context: ContextRef, device: DeviceRef, nbytes: usize) -> Result<Shared, String> {
        let mut memory = Shared::empty();
        let device = device.word();
        let context = context.word();
        // SAFETY: `void physical_mem::create(const device &, const context &, size_t, bool)` of an object with
        // an empty pointer.
        unsafe { guarded::call(self.create, [memory.place(), device, context, nbytes, 1])? };
        Ok(memory)
    }

    /// The size in bytes.
    pub(crate) fn size(&self, memory: &Shared) -> Result<usize, String> {
        // SAFETY: `size_t physical_mem::size() const noexcept`
        unsafe { guarded::call(self.size, [memory.address()]) }.map(|[size, _]| size)
    }

    /// The granularity in bytes: the size of physical memory, and of each mapped part, is a multiple of it.
    pub(crate) fn granularity(&self, context: ContextRef, device: DeviceRef) -> Result<usize, String> {
        let arguments = [device.word(), context.word(), RECOMMENDED];
        // SAFETY: `size_t get_mem_granularity(const device &, const context &, granularity_mode)`
        unsafe { guarded::call(self.granularity, arguments) }.map(|[size, _]| size)
    }

    /// Reserves addresses, and maps a part of the memory there, for reading and writing. Returns the first address.
    pub(crate) fn map(
        &self,
        memory: &Shared,
        context: ContextRef,
        offset: usize,
        nbytes: usize,
    ) -> Result<usize, String> {
        // SAFETY: `uintptr_t reserve_virtual_mem(uintptr_t, size_t, const context &)`
        let [start, _] = unsafe { guarded::call(self.reserve, [0, nbytes, context.word()])? };
        // SAFETY: `void *physical_mem::map(uintptr_t, size_t, address_access_mode, size_t) const`
        let mapped = unsafe { guarded::call(self.map, [memory.address(), start, nbytes, READ_WRITE, offset]) };
        if mapped.is_err() {
            // SAFETY: nothing is mapped there.
            let _ = unsafe { self.unreserve(start, nbytes, context) };
        }
        mapped.map(|_| start)
    }

    /// Unmaps what [`Self::map`] mapped, and frees the addresses.
    ///
    /// # Safety
    ///
    /// It was made with this size in this context, and is not used any more.
    pub(crate) unsafe fn unmap(&self, start: usize, nbytes: usize, context: ContextRef) -> Result<(), String> {
        // SAFETY: `void unmap(const void *, size_t, const context &)`
        unsafe { guarded::call(self.unmap, [start, nbytes, context.word()])? };
        // SAFETY: nothing is mapped there any more.
        unsafe { self.unreserve(start, nbytes, context) }
    }

    /// # Safety
    ///
    /// The addresses were reserved in this context, and nothing is mapped there.
    unsafe fn unreserve(&self, start: usize, nbytes: usize, context: ContextRef) -> Result<(), String> {
        // SAFETY: `void free_virtual_mem(uintptr_t, size_t, const context &)`
        unsafe { guarded::call(self.unreserve, [start, nbytes, context.word()]) }.map(drop)
    }

    /// `ipc::physical_memory::get`
    pub(crate) fn get(&self, memory: &Shared) -> Result<HandleData, String> {
        // SAFETY: `handle get(physical_mem &)`; a handle is trivial and has two words.
        let [data, size] = unsafe { guarded::call(self.get, [memory.address()])? };
        Ok(HandleData { data: ptr::with_exposed_provenance_mut(data), size })
    }

    /// `ipc::physical_memory::open`
    pub(crate) fn open(&self, data: &[u8], context: ContextRef, device: DeviceRef) -> Result<Shared, String> {
        let mut memory = Shared::empty();
        let mut copy = data.to_vec();
        let arguments =
            [memory.place(), copy.as_mut_ptr().expose_provenance(), copy.len(), context.word(), device.word()];
        // SAFETY: `physical_mem openIPCPhysicalMemHandle(const std::byte *, size_t, const context &, const device &)`
        unsafe { guarded::call(self.open, arguments)? };
        Ok(memory)
    }
}
