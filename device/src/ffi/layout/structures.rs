//! The structures of ze_api.h that the device reads or writes.
//!
//! Members have the header's order, and its names in Rust spelling, some of them shortened (`kind` for `type`, `input`
//! for `pInputModule`, `size` for `groupSizeX` and its like).

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use super::{Extensible, Extension};

structures! {
    // The driver and context calls.
    /// `ze_driver_properties_t`.
    DriverProperties, 40 bytes {
        /// Identifies the driver.
        uuid: [u8; 16],
        /// Version of the driver; the Unified Runtime reads the low 16 bits.
        driver_version @ 32: u32,
    }
    /// `ze_driver_ipc_properties_t`. Memory bit 0, event pools bit 1.
    DriverIpcProperties, 24 bytes { flags: u32 }
    /// `ze_init_driver_type_desc_t`. GPU bit 0, NPU bit 1; all ones for any driver.
    InitDriverTypeDesc, 24 bytes { flags: u32 }
    /// `ze_context_desc_t`. No flag is defined.
    ContextDesc, 24 bytes { flags: u32 }
    /// `zel_tracer_desc_t` (zel_tracing_api.h). The data is passed to the callbacks.
    TracerDesc, 24 bytes { user_data: usize }

    // The device queries.
    /// `ze_device_properties_t`.
    DeviceProperties, 368 bytes {
        kind: u32,
        vendor_id: u32,
        device_id: u32,
        flags: u32,
        subdevice_id: u32,
        core_clock_rate: u32,
        max_mem_alloc_size: u64,
        max_hardware_contexts: u32,
        max_command_queue_priority: u32,
        num_threads_per_eu: u32,
        physical_eusimd_width: u32,
        num_eus_per_subslice: u32,
        num_subslices_per_slice: u32,
        num_slices: u32,
        timer_resolution @ 80: u64,
        timestamp_valid_bits: u32,
        kernel_timestamp_valid_bits: u32,
        uuid @ 96: [u8; 16],
        name @ 112: [u8; 256],
    }
    /// `ze_device_compute_properties_t`.
    DeviceComputeProperties, 88 bytes {
        max_total_group_size: u32,
        max_group_size_x: u32,
        max_group_size_y: u32,
        max_group_size_z: u32,
        max_group_count_x: u32,
        max_group_count_y: u32,
        max_group_count_z: u32,
        max_shared_local_memory: u32,
        num_sub_group_sizes: u32,
        sub_group_sizes @ 52: [u32; 8],
    }
    /// `ze_device_module_properties_t`.
    DeviceModuleProperties, 64 bytes {
        spirv_version_supported: u32,
        flags: u32,
        fp16flags: u32,
        fp32flags: u32,
        fp64flags: u32,
        max_arguments_size: u32,
        printf_buffer_size: u32,
        native_kernel_supported @ 44: [u8; 16],
    }
    /// `ze_float_atomic_ext_properties_t`.
    FloatAtomicProperties = 0x1_0003, 32 bytes {
        /// Load and store, add, minimum and maximum are bits 0 to 2 for global, 16 to 18 for local memory.
        fp16_flags: u32,
        fp32_flags: u32,
        fp64_flags: u32,
    }
    /// `ze_fabric_vertex_exp_properties_t`.
    FabricVertexProperties, 56 bytes {
        uuid: [u8; 16],
        /// 1 for a device.
        kind: u32,
        remote: u8,
        /// Domain, bus, device and function.
        address @ 40: [u32; 4],
    }
    /// `ze_record_replay_graph_ext_properties_t`.
    GraphProperties = 0x2_0047, 24 bytes { flags: u32 }
    /// `ze_mutable_command_list_exp_properties_t`.
    MutableCommandListProperties = 0x2_0015, 24 bytes { list_flags: u32, command_flags: u32 }
    /// `ze_device_event_properties_t`. Aggregate storage bit 0, IPC bit 1, sync allocation bit 2, interrupts bit 3.
    DeviceEventProperties = 0x2_003e, 24 bytes { flags: u32 }
    /// `ze_device_readonly_memory_ext_properties_t`. 0 none, 1 a hint, 2 enforced.
    DeviceReadonlyMemory = 0x1_0015, 24 bytes { capability: u32 }
    /// `ze_command_queue_group_properties_t`.
    CommandQueueGroupProperties, 40 bytes { flags: u32, max_memory_fill_pattern_size: usize, num_queues @ 32: u32 }
    /// `ze_device_memory_properties_t`.
    DeviceMemoryProperties, 296 bytes {
        flags: u32,
        max_clock_rate: u32,
        max_bus_width: u32,
        total_size @ 32: u64,
        name: [u8; 256],
    }
    /// `ze_device_memory_access_properties_t`.
    DeviceMemoryAccessProperties, 40 bytes {
        host_alloc_capabilities: u32,
        device_alloc_capabilities: u32,
        shared_single_device_alloc_capabilities: u32,
        shared_cross_device_alloc_capabilities: u32,
        shared_system_alloc_capabilities: u32,
    }
    /// `ze_device_cache_properties_t`.
    DeviceCacheProperties, 32 bytes { flags: u32, cache_size: usize }
    /// `ze_device_image_properties_t`.
    DeviceImageProperties, 56 bytes {
        max_image_dims_1d: u32,
        max_image_dims_2d: u32,
        max_image_dims_3d: u32,
        max_image_buffer_size: u64,
        max_image_array_slices: u32,
        max_samplers: u32,
        max_read_image_args: u32,
        max_write_image_args: u32,
    }
    /// `ze_device_external_memory_properties_t`.
    DeviceExternalMemoryProperties, 32 bytes {
        memory_allocation_import_types: u32,
        memory_allocation_export_types: u32,
        image_import_types: u32,
        image_export_types: u32,
    }
    /// `ze_device_p2p_properties_t`.
    DeviceP2pProperties, 24 bytes { flags: u32 }
    /// `ze_eu_count_ext_t`.
    EuCountExt = 0x1_0005, 24 bytes { num_total_eus: u32 }
    /// `ze_device_ip_version_ext_t`.
    DeviceIpVersionExt = 0x1_000f, 24 bytes { ip_version: u32 }
    /// `ze_pci_ext_properties_t`, with `ze_pci_address_ext_t` and `ze_pci_speed_ext_t` inside it.
    PciExtProperties, 48 bytes {
        /// Domain, bus, device, function.
        address: [u32; 4],
        /// `maxSpeed.genVersion`, -1 when unknown.
        gen_version: i32,
        /// `maxSpeed.width`, -1 when unknown.
        width: i32,
        /// `maxSpeed.maxBandwidth`, -1 when unknown.
        max_bandwidth @ 40: i64,
    }

    // The memory calls.
    /// `ze_device_mem_alloc_desc_t`.
    DeviceMemAllocDesc, 24 bytes { flags: u32, ordinal @ 20: u32 }
    /// `ze_host_mem_alloc_desc_t`.
    HostMemAllocDesc, 24 bytes { flags: u32 }
    /// `ze_memory_allocation_properties_t`.
    MemoryAllocationProperties, 40 bytes { kind: u32, id: u64, page_size @ 32: u64 }
    /// `ze_memory_free_ext_desc_t`.
    MemoryFreeExtDesc, 24 bytes { free_policy: u32 }
    /// `ze_physical_mem_desc_t`.
    PhysicalMemDesc, 32 bytes {
        /// On the device bit 0, on the host bit 1.
        flags @ 16: u32,
        size @ 24: usize,
    }
    /// `ze_physical_mem_properties_t`.
    PhysicalMemProperties, 32 bytes { id: u64, size @ 24: usize }
    /// `ze_external_memory_export_desc_t`. Opaque descriptor bit 0, dma_buf bit 1.
    ExternalMemoryExportDesc = 0x18, 24 bytes { flags: u32 }
    /// `ze_external_memory_import_fd_t`.
    ExternalMemoryImportFd = 0x19, 24 bytes {
        /// Opaque descriptor bit 0, dma_buf bit 1.
        flags: u32,
        fd @ 20: i32,
    }
    /// `ze_external_memory_export_fd_t`.
    ExternalMemoryExportFd = 0x1a, 24 bytes {
        /// Opaque descriptor bit 0, dma_buf bit 1.
        flags: u32,
        fd @ 20: i32,
    }

    // The event calls.
    /// `ze_event_pool_desc_t`.
    EventPoolDesc, 24 bytes { flags: u32, count @ 20: u32 }
    /// `ze_event_desc_t`.
    EventDesc, 32 bytes { index: u32, signal: u32, wait @ 24: u32 }
    /// `ze_event_query_kernel_timestamps_results_ext_properties_t`. Each array may be NULL. A synchronized timestamp
    /// (`ze_synchronized_timestamp_result_ext_t`) has the shape of a kernel timestamp.
    KernelTimestampsResults, 32 bytes {
        /// `pKernelTimestampsBuffer`.
        kernel: *mut KernelTimestampResult,
        /// `pSynchronizedTimestampsBuffer`.
        synchronized: *mut KernelTimestampResult,
    }
    /// `ze_event_counter_based_desc_t`, and the driver extension's descriptor of the same shape.
    EventCounterBasedDesc, 32 bytes {
        /// Immediate bit 0, non-immediate bit 1, host visible bit 2, IPC bit 3, timestamps bits 4 and 5.
        flags: u32,
        signal: u32,
        wait: u32,
    }
    /// `ze_event_counter_based_external_sync_allocation_desc_t`.
    ExternalSyncAllocationDesc = 0x2_003b, 40 bytes {
        device_address: *mut u64,
        /// NULL for the same as the device.
        host_address: *mut u64,
        completion_value @ 32: u64,
    }
    /// `ze_event_counter_based_external_aggregate_storage_desc_t`.
    ExternalAggregateStorageDesc = 0x2_003f, 40 bytes {
        device_address: *mut u64,
        increment_value: u64,
        completion_value @ 32: u64,
    }

    // The queue, list and fence calls.
    /// `ze_command_queue_desc_t`.
    CommandQueueDesc, 40 bytes { ordinal: u32, index: u32, flags: u32, mode: u32, priority @ 32: u32 }
    /// `ze_command_list_desc_t`.
    CommandListDesc, 24 bytes { command_queue_group_ordinal: u32, flags @ 20: u32 }
    /// `ze_fence_desc_t`.
    FenceDesc, 24 bytes { flags: u32 }
    /// `ze_mutable_command_id_exp_desc_t`.
    MutableCommandIdDesc, 24 bytes { flags: u32 }
    /// `ze_mutable_commands_exp_desc_t`.
    MutableCommandsDesc, 24 bytes { flags: u32 }
    /// `ze_mutable_kernel_argument_exp_desc_t`.
    MutableKernelArgument = 0x2_0019, 48 bytes {
        command_id: u64,
        arg_index @ 24: u32,
        arg_size: usize,
        value: *const u8,
    }
    /// `ze_mutable_group_count_exp_desc_t`.
    MutableGroupCount = 0x2_001a, 32 bytes { command_id: u64, group_count: *const Extent }
    /// `ze_mutable_group_size_exp_desc_t`.
    MutableGroupSize = 0x2_001b, 40 bytes {
        command_id: u64,
        /// In x, y and z.
        size: [u32; 3],
    }
    /// `ze_mutable_global_offset_exp_desc_t`.
    MutableGlobalOffset = 0x2_001c, 40 bytes {
        command_id: u64,
        /// In x, y and z.
        offset: [u32; 3],
    }

    // The module and kernel calls.
    /// `ze_module_desc_t`.
    ModuleDesc, 56 bytes {
        /// 0 SPIR-V, 1 native.
        format: u32,
        /// In bytes.
        input_size @ 24: usize,
        input: *const u8,
        /// A C string, or NULL.
        build_flags: *const c_char,
        /// May be NULL.
        constants: *const ModuleConstants,
    }
    /// `ze_module_program_exp_desc_t`.
    ModuleProgramDesc = 0x2_0002, 56 bytes {
        count: u32,
        /// In bytes.
        input_sizes @ 24: *const usize,
        inputs: *const *const u8,
        /// C strings, or NULL.
        build_flags: *const *const c_char,
        /// May be NULL.
        constants: *const *const ModuleConstants,
    }
    /// `ze_module_properties_t`. Imports bit 0.
    ModuleProperties, 24 bytes { flags: u32 }
    /// `ze_kernel_desc_t`.
    KernelDesc, 32 bytes { flags: u32, name @ 24: *const c_char }
    /// `ze_kernel_properties_t`.
    KernelProperties, 96 bytes {
        num_kernel_args: u32,
        /// In x, y and z.
        required_group_size: [u32; 3],
        required_num_sub_groups: u32,
        required_subgroup_size: u32,
        max_subgroup_size: u32,
        max_num_subgroups: u32,
        /// In bytes.
        local_mem_size: u32,
        /// In bytes.
        private_mem_size: u32,
        /// In bytes.
        spill_mem_size: u32,
        /// Of the kernel, and of the module.
        uuid @ 60: [u8; 32],
    }
    /// `ze_kernel_preferred_group_size_properties_t`.
    KernelPreferredGroupSize = 0x21, 24 bytes { preferred_multiple: u32 }
    /// `ze_kernel_max_group_size_properties_ext_t`.
    KernelMaxGroupSize = 0x1_0013, 24 bytes { max_group_size: u32 }
    /// `ze_command_list_append_launch_kernel_param_cooperative_desc_t`.
    LaunchCooperativeDesc = 0x2_0036, 24 bytes { is_cooperative: u8 }
}

/// `ze_driver_extension_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DriverExtensionProperties {
    /// Name, NUL-terminated.
    pub name: [u8; 256],
    /// Version of the extension.
    pub version: u32,
}

/// `zel_component_version_t` (ze_loader.h).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ComponentVersion {
    /// Name, NUL-terminated.
    pub component_name: [u8; 64],
    /// Version of the API.
    pub spec_version: u32,
    /// Major, minor and patch version of the component.
    pub component_lib_version: [i32; 3],
}

/// `ze_ipc_mem_handle_t`, `ze_ipc_event_pool_handle_t` and `ze_ipc_event_counter_based_handle_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IpcHandle {
    pub data: [u8; 64],
}

/// `ze_kernel_timestamp_data_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelTimestampData {
    pub kernel_start: u64,
    pub kernel_end: u64,
}

/// `ze_kernel_timestamp_result_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelTimestampResult {
    pub global: KernelTimestampData,
    pub context: KernelTimestampData,
}

/// `ze_copy_region_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CopyRegion {
    pub origin_x: u32,
    pub origin_y: u32,
    pub origin_z: u32,
    pub width: u32,
    pub height: u32,
    pub depth: u32,
}

/// `ze_module_constants_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModuleConstants {
    pub count: u32,
    pub ids: *const u32,
    pub values: *const *const u8,
}

/// `ze_group_count_t` and `ze_group_size_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Extent {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

const _: () = {
    assert!(size_of::<DriverExtensionProperties>() == 260);
    assert!(size_of::<ComponentVersion>() == 80);
    assert!(size_of::<KernelTimestampData>() == 16);
    assert!(size_of::<KernelTimestampResult>() == 32);
    assert!(size_of::<IpcHandle>() == 64);
    assert!(size_of::<CopyRegion>() == 24);
    assert!(size_of::<ModuleConstants>() == 24);
    assert!(size_of::<Extent>() == 12);
};
