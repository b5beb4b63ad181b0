//! Structures of the event calls.

use std::ffi::c_void;

/// `ze_event_pool_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventPoolDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `count`.
    pub count: u32,
}

/// `ze_event_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `index`.
    pub index: u32,
    /// `signal`.
    pub signal: u32,
    /// `wait`.
    pub wait: u32,
}

/// `ze_kernel_timestamp_data_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelTimestampData {
    /// `kernelStart`.
    pub kernel_start: u64,
    /// `kernelEnd`.
    pub kernel_end: u64,
}

/// `ze_kernel_timestamp_result_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelTimestampResult {
    /// `global`.
    pub global: KernelTimestampData,
    /// `context`.
    pub context: KernelTimestampData,
}

/// `ze_event_query_kernel_timestamps_results_ext_properties_t`. Each array may be NULL. A synchronized timestamp
/// (`ze_synchronized_timestamp_result_ext_t`) has the shape of a kernel timestamp.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelTimestampsResults {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `pKernelTimestampsBuffer`.
    pub kernel: *mut KernelTimestampResult,
    /// `pSynchronizedTimestampsBuffer`.
    pub synchronized: *mut KernelTimestampResult,
}

/// `ze_event_counter_based_desc_t`, and the driver extension's descriptor of the same shape.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventCounterBasedDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`: immediate bit 0, non-immediate bit 1, host visible bit 2, IPC bit 3, timestamps bits 4 and 5.
    pub flags: u32,
    /// `signal`.
    pub signal: u32,
    /// `wait`.
    pub wait: u32,
}

/// `ze_event_counter_based_external_sync_allocation_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalSyncAllocationDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `deviceAddress`.
    pub device_address: *mut u64,
    /// `hostAddress`. NULL for the same as the device.
    pub host_address: *mut u64,
    /// `completionValue`.
    pub completion_value: u64,
}

/// `ze_event_counter_based_external_aggregate_storage_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalAggregateStorageDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `deviceAddress`.
    pub device_address: *mut u64,
    /// `incrementValue`.
    pub increment_value: u64,
    /// `completionValue`.
    pub completion_value: u64,
}

/// `ze_ipc_event_counter_based_handle_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IpcEventCounterBasedHandle {
    /// `data`.
    pub data: [u8; 64],
}

/// `ze_ipc_event_pool_handle_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IpcEventPoolHandle {
    /// `data`.
    pub data: [u8; 64],
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<EventPoolDesc>(), 24);
        assert_eq!(size_of::<EventDesc>(), 32);
        assert_eq!(size_of::<KernelTimestampData>(), 16);
        assert_eq!(size_of::<KernelTimestampResult>(), 32);
        assert_eq!(size_of::<KernelTimestampsResults>(), 32);
        assert_eq!(offset_of!(EventPoolDesc, count), 20);
        assert_eq!(offset_of!(EventDesc, wait), 24);
        assert_eq!(size_of::<EventCounterBasedDesc>(), 32);
        assert_eq!(size_of::<ExternalSyncAllocationDesc>(), 40);
        assert_eq!(size_of::<ExternalAggregateStorageDesc>(), 40);
        assert_eq!(offset_of!(ExternalSyncAllocationDesc, completion_value), 32);
        assert_eq!(offset_of!(ExternalAggregateStorageDesc, completion_value), 32);
        assert_eq!(size_of::<IpcEventCounterBasedHandle>(), 64);
        assert_eq!(size_of::<IpcEventPoolHandle>(), 64);
    }
}
