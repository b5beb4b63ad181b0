//! Structures of the memory calls.

use std::ffi::c_void;

/// `ze_device_mem_alloc_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceMemAllocDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `ordinal`.
    pub ordinal: u32,
}

/// `ze_host_mem_alloc_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HostMemAllocDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
}

/// `ze_memory_allocation_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemoryAllocationProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `type`.
    pub kind: u32,
    /// `id`.
    pub id: u64,
    /// `pageSize`.
    pub page_size: u64,
}

/// `ze_memory_free_ext_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemoryFreeExtDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `freePolicy`.
    pub free_policy: u32,
}

/// `ze_physical_mem_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PhysicalMemDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: on the device bit 0, on the host bit 1.
    pub flags: u32,
    /// `size`.
    pub size: usize,
}

/// `ze_physical_mem_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PhysicalMemProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `id`.
    pub id: u64,
    /// `size`.
    pub size: usize,
}

/// `ze_external_memory_export_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalMemoryExportDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: opaque descriptor bit 0, dma_buf bit 1.
    pub flags: u32,
}

/// `ze_external_memory_import_fd_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalMemoryImportFd {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: opaque descriptor bit 0, dma_buf bit 1.
    pub flags: u32,
    /// `fd`.
    pub fd: i32,
}

/// `ze_external_memory_export_fd_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalMemoryExportFd {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: opaque descriptor bit 0, dma_buf bit 1.
    pub flags: u32,
    /// `fd`.
    pub fd: i32,
}

/// `ze_ipc_mem_handle_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IpcMemHandle {
    /// `data`.
    pub data: [u8; 64],
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<IpcMemHandle>(), 64);
        assert_eq!(size_of::<DeviceMemAllocDesc>(), 24);
        assert_eq!(size_of::<HostMemAllocDesc>(), 24);
        assert_eq!(size_of::<MemoryAllocationProperties>(), 40);
        assert_eq!(size_of::<MemoryFreeExtDesc>(), 24);
        assert_eq!(size_of::<PhysicalMemDesc>(), 32);
        assert_eq!(size_of::<PhysicalMemProperties>(), 32);
        assert_eq!(size_of::<ExternalMemoryExportDesc>(), 24);
        assert_eq!(size_of::<ExternalMemoryImportFd>(), 24);
        assert_eq!(size_of::<ExternalMemoryExportFd>(), 24);
        assert_eq!(offset_of!(PhysicalMemDesc, flags), 16);
        assert_eq!(offset_of!(PhysicalMemDesc, size), 24);
        assert_eq!(offset_of!(PhysicalMemProperties, size), 24);
        assert_eq!(offset_of!(ExternalMemoryImportFd, fd), 20);
        assert_eq!(offset_of!(ExternalMemoryExportFd, fd), 20);
        assert_eq!(offset_of!(MemoryAllocationProperties, page_size), 32);
        assert_eq!(offset_of!(DeviceMemAllocDesc, ordinal), 20);
    }
}
