//! The structures that have a `pNext` chain, and those that can be in one.

use std::ffi::c_void;
use std::mem::offset_of;

use super::layout::command::{
    CommandListDesc, GraphDumpDesc, MutableCommandsDesc, MutableGlobalOffset, MutableGroupCount, MutableGroupSize,
    MutableKernelArgument,
};
use super::layout::device::{
    DeviceEventProperties, DeviceIpVersionExt, DeviceModuleProperties, DeviceProperties, DeviceReadonlyMemory,
    EuCountExt, FloatAtomicProperties, GraphProperties, MutableCommandListProperties,
};
use super::layout::event::{
    EventCounterBasedDesc, EventPoolDesc, ExternalAggregateStorageDesc, ExternalSyncAllocationDesc,
};
use super::layout::memory::{
    DeviceMemAllocDesc, ExternalMemoryExportDesc, ExternalMemoryExportFd, ExternalMemoryImportFd, HostMemAllocDesc,
    MemoryAllocationProperties, PhysicalMemDesc, PhysicalMemProperties,
};
use super::layout::module::{
    KernelMaxGroupSize, KernelPreferredGroupSize, KernelProperties, LaunchCooperativeDesc, ModuleDesc,
    ModuleProgramDesc,
};
use super::layout::stype;

/// What every extensible structure begins with (ze_api.h, `ze_base_properties_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Base {
    /// `stype`: the type of the structure (`ze_structure_type_t`).
    pub s_type: u32,
    /// `pNext`: the next structure, or NULL.
    pub p_next: *mut c_void,
}

/// A structure with a `pNext` chain.
///
/// # Safety
/// It must begin with the members of [`Base`].
pub(crate) unsafe trait Extensible {}

/// A structure that extends other structures.
///
/// # Safety
/// Every structure with this `stype` must be one of these (ze_api.h).
pub(crate) unsafe trait Extension: Extensible + Copy {
    /// Its `stype`.
    const S_TYPE: u32;
}

// SAFETY: these are its members.
unsafe impl Extensible for Base {}

macro_rules! extensible {
    ($($structure:ident $(= $s_type:ident)?;)*) => {
        $(
            const _: () = assert!(offset_of!($structure, s_type) == 0 && offset_of!($structure, p_next) == 8);
            // SAFETY: the assertion above shows the members at the offsets of Base; both sides are u32 and a pointer.
            unsafe impl Extensible for $structure {}
            $(
                // SAFETY: ze_structure_type_t gives this value to this structure only.
                unsafe impl Extension for $structure {
                    const S_TYPE: u32 = stype::$s_type;
                }
            )?
        )*
    };
}

extensible! {
    CommandListDesc;
    DeviceMemAllocDesc;
    DeviceModuleProperties;
    DeviceProperties;
    EventCounterBasedDesc;
    EventPoolDesc;
    HostMemAllocDesc;
    KernelProperties;
    MemoryAllocationProperties;
    ModuleDesc;
    MutableCommandsDesc;
    PhysicalMemDesc;
    PhysicalMemProperties;
    DeviceEventProperties = DEVICE_EVENT_PROPERTIES;
    DeviceIpVersionExt = DEVICE_IP_VERSION_EXT;
    DeviceReadonlyMemory = DEVICE_READONLY_MEMORY_EXT_PROPERTIES;
    EuCountExt = EU_COUNT_EXT;
    ExternalAggregateStorageDesc = EXTERNAL_AGGREGATE_STORAGE_DESC;
    ExternalMemoryExportDesc = EXTERNAL_MEMORY_EXPORT_DESC;
    ExternalMemoryExportFd = EXTERNAL_MEMORY_EXPORT_FD;
    ExternalMemoryImportFd = EXTERNAL_MEMORY_IMPORT_FD;
    ExternalSyncAllocationDesc = EXTERNAL_SYNC_ALLOCATION_DESC;
    FloatAtomicProperties = FLOAT_ATOMIC_EXT_PROPERTIES;
    GraphDumpDesc = RECORD_REPLAY_GRAPH_DUMP_DESC;
    GraphProperties = RECORD_REPLAY_GRAPH_PROPERTIES;
    KernelMaxGroupSize = KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES;
    KernelPreferredGroupSize = KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES;
    LaunchCooperativeDesc = LAUNCH_COOPERATIVE_DESC;
    ModuleProgramDesc = MODULE_PROGRAM_EXP_DESC;
    MutableCommandListProperties = MUTABLE_COMMAND_LIST_EXP_PROPERTIES;
    MutableGlobalOffset = MUTABLE_GLOBAL_OFFSET_EXP_DESC;
    MutableGroupCount = MUTABLE_GROUP_COUNT_EXP_DESC;
    MutableGroupSize = MUTABLE_GROUP_SIZE_EXP_DESC;
    MutableKernelArgument = MUTABLE_KERNEL_ARGUMENT_EXP_DESC;
}
