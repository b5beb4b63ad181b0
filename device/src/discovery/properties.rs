//! The properties of a device.
//!
//! The values that decide how the Unified Runtime behaves are named constants; the others are those of a small GPU. Of
//! the structures in the `pNext` chain, the known ones are filled and the others are left alone. The properties of
//! kernels are constants that every engine supports (`kernels::engine`), so that no engine is loaded to report them.

use crate::discovery::{device::Device, driver};
use crate::ffi;
use crate::ffi::layout::{
    CommandQueueGroupProperties, DeviceCacheProperties, DeviceComputeProperties, DeviceEventProperties,
    DeviceExternalMemoryProperties, DeviceImageProperties, DeviceIpVersionExt, DeviceMemoryAccessProperties,
    DeviceMemoryProperties, DeviceModuleProperties, DeviceProperties, DeviceReadonlyMemory, EuCountExt,
    FloatAtomicProperties, GraphProperties, MutableCommandListProperties, PciExtProperties, stype,
};
use crate::ffi::result::{Outcome, ZeResult, call, getters, properties};
use crate::ffi::{Out, handles::Handle};
use crate::platform::{clock::VALID_BITS, settings};

/// `ZE_DEVICE_TYPE_GPU`: the adapters accept no other type.
const GPU: u32 = 1;
/// Intel's PCI vendor id, which the Unified Runtime requires.
const VENDOR: u32 = 0x8086;
/// No Intel device has this id, so no workaround for a device applies.
const DEVICE: u32 = 0x5afe;
/// Slices of each part, sub-slices in a slice, execution units in a sub-slice, threads in a unit.
const SHAPE: [u32; 4] = [1, 4, 8, 8];
/// `ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE`.
const SUB_DEVICE: u32 = 1 << 1;
/// `ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING`.
const ON_DEMAND_PAGING: u32 = 1 << 3;
/// Read and write, atomic, concurrent, concurrent atomic.
const ALL_ACCESS: u32 = 0b1111;
/// Denormals, infinity and NaN, the three rounding modes, fused multiply-add.
const FLOAT: u32 = 0b11_1111;
/// The largest number of work items in a group.
pub(crate) const LARGEST_GROUP: u32 = 1024;
/// Atomic load and store, add, minimum and maximum, in global and in local memory.
const FLOAT_ATOMICS: u32 = 0b111 << 16 | 0b111;
/// `ze_mutable_command_exp_flags_t`: arguments, number of groups, group size, offset, events and kernel of a launch.
pub(crate) const MUTABLE: u32 = 0b111_1111;
/// `ze_record_replay_graph_ext_flags_t`: graphs that do not change, graphs and lists in graphs, and
/// events that graphs share with other processes.
const GRAPHS: u32 = 0b1_1101;
/// Of `ze_device_event_properties_flags_t`: aggregate storage, IPC, and sync allocations.
const EVENTS: u32 = 0b111;
/// `ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED`: a write to a read-only page faults.
const ENFORCED: u32 = 2;
/// The queue groups, by their ordinals: one for compute and copy, and two for copies only, as the Data Center GPU Max
/// has them.
const QUEUE_GROUPS: [QueueGroup; 3] = [
    // There is no largest pattern, as with the compute queues of Intel's driver.
    QueueGroup { flags: COMPUTE | COPY | COOPERATIVE, largest_pattern: usize::MAX, queues: 4 },
    // As with Intel's copy engines. The v1 adapter uses a group with one queue for the copies of all its queues.
    QueueGroup { flags: COPY, largest_pattern: 16, queues: 1 },
    // The link copy engines, which Intel SHMEM asks for by their ordinal.
    QueueGroup { flags: COPY, largest_pattern: 16, queues: 7 },
];
/// `ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE`.
const COMPUTE: u32 = 1;
/// `ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY`.
const COPY: u32 = 1 << 1;
/// `ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS`.
const COOPERATIVE: u32 = 1 << 2;
/// `ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD` and `ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF`: the same descriptor here.
pub(crate) const EXTERNAL_MEMORY_TYPES: u32 = 0b11;

/// A group of queues that can do the same.
pub(crate) struct QueueGroup {
    /// `ze_command_queue_group_property_flags_t`.
    flags: u32,
    /// The largest pattern of a fill, in bytes.
    pub largest_pattern: usize,
    /// The number of queues, and of engines.
    pub queues: u32,
}

impl QueueGroup {
    /// The group with this ordinal: `INVALID_ARGUMENT` if there is none.
    pub(crate) fn get(ordinal: u32) -> Outcome<&'static Self> {
        QUEUE_GROUPS.get(ordinal as usize).ok_or(ZeResult::INVALID_ARGUMENT)
    }

    /// Whether lists for one group can be executed by a queue of the other: both run kernels, or both only copy.
    /// Intel's driver asks no more, and the v1 adapter executes lists for a copy engine on all of them in turn.
    pub(crate) fn are_alike(one: u32, other: u32) -> bool {
        let runs_kernels = |ordinal| Self::get(ordinal).map(Self::runs_kernels).ok();
        runs_kernels(one) == runs_kernels(other)
    }

    pub(crate) fn runs_kernels(&self) -> bool {
        self.flags & COMPUTE != 0
    }
}

/// `zeDeviceGetProperties` (ze_api.h).
pub extern "C" fn get_properties(device: Handle<Device>, properties: Out<DeviceProperties>) -> ZeResult {
    call(|| {
        let device = device.get()?;
        let [slices, subslices, units, threads] = SHAPE;
        // The slices of all sub-devices together.
        let slices = slices * driver::sub_devices(&device).len().max(1) as u32;
        let part = device.whole().map(|(_, number)| *number);
        properties.edit(|out| {
            out.kind = GPU;
            out.vendor_id = VENDOR;
            out.device_id = DEVICE;
            out.flags = if part.is_some() { ON_DEMAND_PAGING | SUB_DEVICE } else { ON_DEMAND_PAGING };
            out.subdevice_id = part.unwrap_or(0);
            out.core_clock_rate = 1000;
            out.max_mem_alloc_size = device.memory.limit;
            out.max_hardware_contexts = 1024;
            out.max_command_queue_priority = 0;
            out.num_threads_per_eu = threads;
            out.physical_eusimd_width = 16;
            out.num_eus_per_subslice = units;
            out.num_subslices_per_slice = subslices;
            out.num_slices = slices;
            // In nanoseconds per tick or in ticks per second, depending on the version of the structure.
            out.timer_resolution = if out.s_type == stype::DEVICE_PROPERTIES_1_2 { 1_000_000_000 } else { 1 };
            out.timestamp_valid_bits = VALID_BITS;
            out.kernel_timestamp_valid_bits = VALID_BITS;
            out.uuid = device.uuid();
            out.name = ffi::text("urscope software device");
        })?;
        properties.edit_next(|out: &mut DeviceIpVersionExt| out.ip_version = device.ip_version)?;
        properties.edit_next(|out: &mut EuCountExt| out.num_total_eus = slices * subslices * units)?;
        properties.edit_next(|out: &mut GraphProperties| out.flags = GRAPHS)?;
        properties
            .edit_next(|out: &mut MutableCommandListProperties| (out.list_flags, out.command_flags) = (0, MUTABLE))?;
        properties.edit_next(|out: &mut DeviceEventProperties| out.flags = EVENTS)?;
        properties.edit_next(|out: &mut DeviceReadonlyMemory| out.capability = ENFORCED)
    })
}

properties! {
    zeDeviceGetComputeProperties: get_compute_properties(_device: Device, out: DeviceComputeProperties) {
        out.max_total_group_size = LARGEST_GROUP;
        (out.max_group_size_x, out.max_group_size_y, out.max_group_size_z) =
            (LARGEST_GROUP, LARGEST_GROUP, LARGEST_GROUP);
        (out.max_group_count_x, out.max_group_count_y, out.max_group_count_z) = (u32::MAX, u32::MAX, u32::MAX);
        out.max_shared_local_memory = 64 << 10;
        out.num_sub_group_sizes = 3;
        out.sub_group_sizes = [8, 16, 32, 0, 0, 0, 0, 0];
    }

    /// All access to memory of the device, and none to system memory unless `ZE_SOFT_SYSTEM_USM=on`: kernels and copies
    /// always accept it, but a program that reads this property behaves differently than on most GPUs.
    zeDeviceGetMemoryAccessProperties: get_memory_access_properties(_device: Device, out: DeviceMemoryAccessProperties) {
        out.host_alloc_capabilities = ALL_ACCESS;
        out.device_alloc_capabilities = ALL_ACCESS;
        out.shared_single_device_alloc_capabilities = ALL_ACCESS;
        out.shared_cross_device_alloc_capabilities = ALL_ACCESS;
        out.shared_system_alloc_capabilities = if settings::get().system_usm { ALL_ACCESS } else { 0 };
    }

    /// There are no images.
    zeDeviceGetImageProperties: get_image_properties(_device: Device, out: DeviceImageProperties) {
        (out.max_image_dims_1d, out.max_image_dims_2d, out.max_image_dims_3d) = (0, 0, 0);
        out.max_image_buffer_size = 0;
        out.max_image_array_slices = 0;
        out.max_samplers = 0;
        (out.max_read_image_args, out.max_write_image_args) = (0, 0);
    }

    /// Allocations can be exported as descriptors of both types, and imported from them.
    zeDeviceGetExternalMemoryProperties: get_external_memory_properties(
        _device: Device, out: DeviceExternalMemoryProperties
    ) {
        out.memory_allocation_import_types = EXTERNAL_MEMORY_TYPES;
        out.memory_allocation_export_types = EXTERNAL_MEMORY_TYPES;
        (out.image_import_types, out.image_export_types) = (0, 0);
    }

    /// The PCI domain is one that no machine has, so it collides with no device.
    zeDevicePciGetPropertiesExt: pci_get_properties(device: Device, out: PciExtProperties) {
        out.address = pci_address(device.index);
        (out.gen_version, out.width, out.max_bandwidth) = (-1, -1, -1);
    }
}

/// `zeDeviceGetModuleProperties` (ze_api.h).
pub extern "C" fn get_module_properties(device: Handle<Device>, properties: Out<DeviceModuleProperties>) -> ZeResult {
    call(|| {
        device.get()?;
        properties.edit(|out| {
            out.spirv_version_supported = 1 << 16 | 4;
            // Half and double precision, 64-bit atomics.
            out.flags = 0b111;
            (out.fp16flags, out.fp32flags, out.fp64flags) = (FLOAT, FLOAT, FLOAT);
            out.max_arguments_size = 2048;
            out.printf_buffer_size = 4 << 20;
            out.native_kernel_supported = [0; 16];
        })?;
        properties.edit_next(|out: &mut FloatAtomicProperties| {
            (out.fp16_flags, out.fp32_flags, out.fp64_flags) = (0, FLOAT_ATOMICS, FLOAT_ATOMICS);
        })
    })
}

/// `zeDeviceGetCommandQueueGroupProperties` (ze_api.h).
pub extern "C" fn get_command_queue_group_properties(
    device: Handle<Device>,
    count: Out<u32>,
    properties: Out<CommandQueueGroupProperties>,
) -> ZeResult {
    call(|| {
        device.get()?;
        ffi::enumerate(count, properties, &QUEUE_GROUPS, |place, group| {
            place.edit(|out| {
                out.flags = group.flags;
                out.max_memory_fill_pattern_size = group.largest_pattern;
                out.num_queues = group.queues;
            })
        })
    })
}

getters! {
    zeDeviceGetCounterBasedEventMaxValue: get_counter_based_event_max_value(_device: Device) -> u64 { u64::MAX }
    /// A command is one operation of one engine.
    zeDeviceGetAggregatedCopyOffloadIncrementValue: get_aggregated_copy_offload_increment_value(_device: Device) -> u32 {
        1
    }
}

/// `zeDeviceGetMemoryProperties` (ze_api.h). There is one memory.
pub extern "C" fn get_memory_properties(
    device: Handle<Device>,
    count: Out<u32>,
    properties: Out<DeviceMemoryProperties>,
) -> ZeResult {
    call(|| {
        let device = device.get()?;
        ffi::enumerate(count, properties, &[()], |memory, ()| {
            memory.edit(|out| {
                out.flags = 0;
                out.max_clock_rate = 1000;
                out.max_bus_width = 64;
                out.total_size = device.memory.limit;
                out.name = ffi::text("host memory");
            })
        })
    })
}

/// `zeDeviceGetCacheProperties` (ze_api.h). There is one cache.
pub extern "C" fn get_cache_properties(
    device: Handle<Device>,
    count: Out<u32>,
    properties: Out<DeviceCacheProperties>,
) -> ZeResult {
    call(|| {
        device.get()?;
        ffi::enumerate(count, properties, &[()], |cache, ()| {
            cache.edit(|out| {
                out.flags = 0;
                out.cache_size = 4 << 20;
            })
        })
    })
}

/// The PCI address of a device: domain, bus, device and function.
pub(super) fn pci_address(index: u32) -> [u32; 4] {
    [0xffff, index, 0, 0]
}
