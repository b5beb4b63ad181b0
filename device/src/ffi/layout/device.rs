//! Structures of the device queries.

use std::ffi::c_void;

/// `ze_device_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `type`.
    pub kind: u32,
    /// `vendorId`.
    pub vendor_id: u32,
    /// `deviceId`.
    pub device_id: u32,
    /// `flags`.
    pub flags: u32,
    /// `subdeviceId`.
    pub subdevice_id: u32,
    /// `coreClockRate`.
    pub core_clock_rate: u32,
    /// `maxMemAllocSize`.
    pub max_mem_alloc_size: u64,
    /// `maxHardwareContexts`.
    pub max_hardware_contexts: u32,
    /// `maxCommandQueuePriority`.
    pub max_command_queue_priority: u32,
    /// `numThreadsPerEU`.
    pub num_threads_per_eu: u32,
    /// `physicalEUSimdWidth`.
    pub physical_eusimd_width: u32,
    /// `numEUsPerSubslice`.
    pub num_eus_per_subslice: u32,
    /// `numSubslicesPerSlice`.
    pub num_subslices_per_slice: u32,
    /// `numSlices`.
    pub num_slices: u32,
    /// `timerResolution`.
    pub timer_resolution: u64,
    /// `timestampValidBits`.
    pub timestamp_valid_bits: u32,
    /// `kernelTimestampValidBits`.
    pub kernel_timestamp_valid_bits: u32,
    /// `uuid`.
    pub uuid: [u8; 16],
    /// `name`.
    pub name: [u8; 256],
}

/// `ze_device_compute_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceComputeProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `maxTotalGroupSize`.
    pub max_total_group_size: u32,
    /// `maxGroupSizeX`.
    pub max_group_size_x: u32,
    /// `maxGroupSizeY`.
    pub max_group_size_y: u32,
    /// `maxGroupSizeZ`.
    pub max_group_size_z: u32,
    /// `maxGroupCountX`.
    pub max_group_count_x: u32,
    /// `maxGroupCountY`.
    pub max_group_count_y: u32,
    /// `maxGroupCountZ`.
    pub max_group_count_z: u32,
    /// `maxSharedLocalMemory`.
    pub max_shared_local_memory: u32,
    /// `numSubGroupSizes`.
    pub num_sub_group_sizes: u32,
    /// `subGroupSizes`.
    pub sub_group_sizes: [u32; 8],
}

/// `ze_device_module_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceModuleProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `spirvVersionSupported`.
    pub spirv_version_supported: u32,
    /// `flags`.
    pub flags: u32,
    /// `fp16flags`.
    pub fp16flags: u32,
    /// `fp32flags`.
    pub fp32flags: u32,
    /// `fp64flags`.
    pub fp64flags: u32,
    /// `maxArgumentsSize`.
    pub max_arguments_size: u32,
    /// `printfBufferSize`.
    pub printf_buffer_size: u32,
    /// `nativeKernelSupported`.
    pub native_kernel_supported: [u8; 16],
}

/// `ze_float_atomic_ext_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FloatAtomicProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `fp16Flags`: load and store, add, minimum and maximum are bits 0 to 2 for global, 16 to 18 for local memory.
    pub fp16_flags: u32,
    /// `fp32Flags`.
    pub fp32_flags: u32,
    /// `fp64Flags`.
    pub fp64_flags: u32,
}

/// `ze_fabric_vertex_exp_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FabricVertexProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `uuid`.
    pub uuid: [u8; 16],
    /// `type`: 1 for a device.
    pub kind: u32,
    /// `remote`.
    pub remote: u8,
    /// `address`: domain, bus, device and function.
    pub address: [u32; 4],
}

/// `ze_record_replay_graph_ext_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GraphProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `graphFlags`.
    pub flags: u32,
}

/// `ze_mutable_command_list_exp_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableCommandListProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `mutableCommandListFlags`.
    pub list_flags: u32,
    /// `mutableCommandFlags`.
    pub command_flags: u32,
}

/// `ze_device_event_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceEventProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`: aggregate storage bit 0, IPC bit 1, sync allocation bit 2, interrupts bit 3.
    pub flags: u32,
}

/// `ze_device_readonly_memory_ext_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceReadonlyMemory {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `readonlyCapability`: 0 none, 1 a hint, 2 enforced.
    pub capability: u32,
}

/// `ze_command_queue_group_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandQueueGroupProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `maxMemoryFillPatternSize`.
    pub max_memory_fill_pattern_size: usize,
    /// `numQueues`.
    pub num_queues: u32,
}

/// `ze_device_memory_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceMemoryProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `maxClockRate`.
    pub max_clock_rate: u32,
    /// `maxBusWidth`.
    pub max_bus_width: u32,
    /// `totalSize`.
    pub total_size: u64,
    /// `name`.
    pub name: [u8; 256],
}

/// `ze_device_memory_access_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceMemoryAccessProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `hostAllocCapabilities`.
    pub host_alloc_capabilities: u32,
    /// `deviceAllocCapabilities`.
    pub device_alloc_capabilities: u32,
    /// `sharedSingleDeviceAllocCapabilities`.
    pub shared_single_device_alloc_capabilities: u32,
    /// `sharedCrossDeviceAllocCapabilities`.
    pub shared_cross_device_alloc_capabilities: u32,
    /// `sharedSystemAllocCapabilities`.
    pub shared_system_alloc_capabilities: u32,
}

/// `ze_device_cache_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceCacheProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `cacheSize`.
    pub cache_size: usize,
}

/// `ze_device_image_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceImageProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `maxImageDims1D`.
    pub max_image_dims_1d: u32,
    /// `maxImageDims2D`.
    pub max_image_dims_2d: u32,
    /// `maxImageDims3D`.
    pub max_image_dims_3d: u32,
    /// `maxImageBufferSize`.
    pub max_image_buffer_size: u64,
    /// `maxImageArraySlices`.
    pub max_image_array_slices: u32,
    /// `maxSamplers`.
    pub max_samplers: u32,
    /// `maxReadImageArgs`.
    pub max_read_image_args: u32,
    /// `maxWriteImageArgs`.
    pub max_write_image_args: u32,
}

/// `ze_device_external_memory_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceExternalMemoryProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `memoryAllocationImportTypes`.
    pub memory_allocation_import_types: u32,
    /// `memoryAllocationExportTypes`.
    pub memory_allocation_export_types: u32,
    /// `imageImportTypes`.
    pub image_import_types: u32,
    /// `imageExportTypes`.
    pub image_export_types: u32,
}

/// `ze_device_p2p_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceP2pProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
}

/// `ze_eu_count_ext_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EuCountExt {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `numTotalEUs`.
    pub num_total_eus: u32,
}

/// `ze_device_ip_version_ext_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceIpVersionExt {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `ipVersion`.
    pub ip_version: u32,
}

/// `ze_pci_ext_properties_t`, with `ze_pci_address_ext_t` and `ze_pci_speed_ext_t` inside it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PciExtProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `address`: domain, bus, device, function.
    pub address: [u32; 4],
    /// `maxSpeed.genVersion`, -1 when unknown.
    pub gen_version: i32,
    /// `maxSpeed.width`, -1 when unknown.
    pub width: i32,
    /// `maxSpeed.maxBandwidth`, -1 when unknown.
    pub max_bandwidth: i64,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<DeviceProperties>(), 368);
        assert_eq!(size_of::<DeviceComputeProperties>(), 88);
        assert_eq!(size_of::<DeviceModuleProperties>(), 64);
        assert_eq!(size_of::<FloatAtomicProperties>(), 32);
        assert_eq!(size_of::<DeviceReadonlyMemory>(), 24);
        assert_eq!(size_of::<DeviceEventProperties>(), 24);
        assert_eq!(size_of::<MutableCommandListProperties>(), 24);
        assert_eq!(size_of::<GraphProperties>(), 24);
        assert_eq!(size_of::<FabricVertexProperties>(), 56);
        assert_eq!(offset_of!(FabricVertexProperties, address), 40);
        assert_eq!(size_of::<CommandQueueGroupProperties>(), 40);
        assert_eq!(size_of::<DeviceMemoryProperties>(), 296);
        assert_eq!(size_of::<DeviceMemoryAccessProperties>(), 40);
        assert_eq!(size_of::<DeviceCacheProperties>(), 32);
        assert_eq!(size_of::<DeviceImageProperties>(), 56);
        assert_eq!(size_of::<DeviceExternalMemoryProperties>(), 32);
        assert_eq!(size_of::<DeviceP2pProperties>(), 24);
        assert_eq!(size_of::<EuCountExt>(), 24);
        assert_eq!(offset_of!(DeviceProperties, timer_resolution), 80);
        assert_eq!(offset_of!(DeviceProperties, uuid), 96);
        assert_eq!(offset_of!(DeviceProperties, name), 112);
        assert_eq!(offset_of!(DeviceComputeProperties, sub_group_sizes), 52);
        assert_eq!(offset_of!(CommandQueueGroupProperties, num_queues), 32);
        assert_eq!(offset_of!(DeviceMemoryProperties, total_size), 32);
        assert_eq!(offset_of!(DeviceModuleProperties, native_kernel_supported), 44);
        assert_eq!(size_of::<DeviceIpVersionExt>(), 24);
        assert_eq!(size_of::<PciExtProperties>(), 48);
        assert_eq!(offset_of!(PciExtProperties, max_bandwidth), 40);
    }
}
