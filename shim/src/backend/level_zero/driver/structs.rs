//! The structures of `ze_api.h` that the driver is called with, and their types.

use std::{ffi::c_void, ptr::null};

use super::super::handle_data::NATIVE_SIZE;

/// `ze_structure_type_t`
pub(super) mod stype {
    pub(crate) const CONTEXT_DESC: u32 = 0xd;
    pub(crate) const COMMAND_QUEUE_DESC: u32 = 0xe;
    pub(crate) const MEMORY_ALLOCATION_PROPERTIES: u32 = 0x17;
    pub(crate) const EXTERNAL_MEMORY_EXPORT_DESC: u32 = 0x18;
    pub(crate) const EXTERNAL_MEMORY_IMPORT_FD: u32 = 0x19;
    pub(crate) const EXTERNAL_MEMORY_EXPORT_FD: u32 = 0x1a;
    pub(crate) const PHYSICAL_MEM_DESC: u32 = 0x20;
    pub(crate) const EVENT_COUNTER_BASED_DESC: u32 = 0x2003a;
    pub(crate) const PHYSICAL_MEM_PROPERTIES: u32 = 0x20040;
}

/// `ze_ipc_mem_handle_t` or `ze_ipc_event_counter_based_handle_t`, which have the same layout.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct IpcHandle(pub(crate) [u8; NATIVE_SIZE]);

/// `ze_memory_allocation_properties_t`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct AllocationProperties {
    pub(super) stype: u32,
    pub(super) next: *mut c_void,
    pub(super) kind: u32,
    pub(super) id: u64,
    pub(super) page_size: u64,
}

/// `ze_physical_mem_desc_t`
#[repr(C)]
pub(super) struct PhysicalMemDesc {
    pub(super) stype: u32,
    pub(super) next: *const c_void,
    pub(super) flags: u32,
    pub(super) size: usize,
}

/// `ze_physical_mem_properties_t`
#[repr(C)]
pub(super) struct PhysicalMemProperties {
    pub(super) stype: u32,
    pub(super) next: *mut c_void,
    pub(super) id: u64,
    pub(super) size: u64,
}

/// `ze_event_counter_based_desc_t`
#[repr(C)]
pub(super) struct EventDesc {
    pub(super) stype: u32,
    pub(super) next: *const c_void,
    pub(super) flags: u32,
    pub(super) signal: u32,
    pub(super) wait: u32,
}

/// `ze_command_queue_desc_t`
#[repr(C)]
pub(super) struct QueueDesc {
    pub(super) stype: u32,
    pub(super) next: *const c_void,
    pub(super) ordinal: u32,
    pub(super) index: u32,
    pub(super) flags: u32,
    pub(super) mode: u32,
    pub(super) priority: u32,
}

/// `ze_context_desc_t`
#[repr(C)]
pub(super) struct ContextDesc {
    pub(super) stype: u32,
    pub(super) next: *const c_void,
    pub(super) flags: u32,
}

/// `ze_external_memory_import_fd_t` and `ze_external_memory_export_fd_t`; `ze_external_memory_export_desc_t` ends
/// before the descriptor.
#[repr(C)]
pub(super) struct ExternalMemory {
    stype: u32,
    next: *const c_void,
    flags: u32,
    pub(super) descriptor: i32,
}

impl ExternalMemory {
    /// With the type `ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD`. `descriptor` is -1 for none.
    pub(super) fn new(stype: u32, descriptor: i32) -> Self {
        const OPAQUE_FD: u32 = 1;
        Self { stype, next: null(), flags: OPAQUE_FD, descriptor }
    }
}
