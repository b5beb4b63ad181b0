//! The numbers of `ur_api.h` (release 2026.2) that urscope uses, under the names they have there: structure types,
//! flags, and properties that can be asked for. Result codes are in [`super::results`].
//!
//! `schema/tests/schema/header.rs` compares every row with the header. Nothing else in the tree may repeat one of these
//! numbers.

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:expr;)*) => {
        $($(#[doc = $doc])+ pub const $name: u32 = $value;)*

        /// Every constant of this module, by its name in the header.
        pub const ALL: &[(&str, u32)] = &[$((stringify!($name), $value),)*];
    };
}

#[rustfmt::skip]
constants! {
    /// `ur_backend_t`: Level Zero.
    UR_BACKEND_LEVEL_ZERO = 1;
    /// `ur_adapter_info_t`: a `ur_backend_t`.
    UR_ADAPTER_INFO_BACKEND = 0;
    /// `ur_adapter_info_t`: the generation of the adapter, 1 or 2 for Level Zero, as a `uint32_t`.
    UR_ADAPTER_INFO_VERSION = 2;

    /// `ur_queue_flags_t`: the queue may execute its commands in any order.
    UR_QUEUE_FLAG_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1 << 0;
    /// `ur_queue_info_t`: whether all its commands have completed, as a `ur_bool_t`.
    UR_QUEUE_INFO_EMPTY = 6;
    /// `ur_event_info_t`: whether its command has completed, as a `ur_event_status_t`.
    UR_EVENT_INFO_COMMAND_EXECUTION_STATUS = 3;
    /// `ur_event_status_t`: the command has completed.
    UR_EVENT_STATUS_COMPLETE = 0;

    /// `ur_structure_type_t` of a `ur_event_native_properties_t`.
    UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES = 20;
    /// `ur_structure_type_t` of a `ur_physical_mem_properties_t`.
    UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES = 37;
    /// `ur_structure_type_t` of a `ur_exp_event_desc_t`.
    UR_STRUCTURE_TYPE_EXP_EVENT_DESC = 0x8000;

    /// `ur_exp_event_flags_t`: the event records when its command ran. Such an event cannot be shared.
    UR_EXP_EVENT_FLAG_ENABLE_PROFILING = 1 << 0;
    /// `ur_exp_event_flags_t`: the event can be shared with other processes.
    UR_EXP_EVENT_FLAG_IPC_EXP = 1 << 1;
    /// The bits that are no `ur_exp_event_flags_t`.
    UR_EXP_EVENT_FLAGS_MASK = 0xffff_fffc;
    /// `ur_physical_mem_flags_t`: the memory can be shared with other processes.
    UR_PHYSICAL_MEM_FLAG_ENABLE_IPC = 1 << 1;
    /// The bits that are no `ur_physical_mem_flags_t`. Bit 0 was a placeholder until 2026.1 and has been undefined
    /// since.
    UR_PHYSICAL_MEM_FLAGS_MASK = 0xffff_fffd;
    /// `ur_virtual_mem_access_flags_t`: mapped for reading and writing.
    UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE = 1 << 1;
    /// `ur_virtual_mem_access_flags_t`: mapped for reading.
    UR_VIRTUAL_MEM_ACCESS_FLAG_READ_ONLY = 1 << 2;
    /// The bits that are no `ur_virtual_mem_access_flags_t`.
    UR_VIRTUAL_MEM_ACCESS_FLAGS_MASK = 0xffff_fff8;
    /// The bits that are no `ur_context_flags_t`.
    UR_CONTEXT_FLAGS_MASK = 0xffff_fffe;
    /// The bits that are no `ur_usm_pool_flags_t`.
    UR_USM_POOL_FLAGS_MASK = 0xffff_fff8;
    /// The bits that are no `ur_usm_advice_flags_t`.
    UR_USM_ADVICE_FLAGS_MASK = 0xfffe_0000;

    /// `ur_context_info_t`: the devices of the context, as a list of `ur_device_handle_t`.
    UR_CONTEXT_INFO_DEVICES = 1;
    /// `ur_context_info_t`: the number of references to the context, as a `uint32_t`.
    UR_CONTEXT_INFO_REFERENCE_COUNT = 2;
    /// `ur_physical_mem_info_t`: a `ur_context_handle_t`.
    UR_PHYSICAL_MEM_INFO_CONTEXT = 0;
    /// `ur_physical_mem_info_t`: a `ur_device_handle_t`.
    UR_PHYSICAL_MEM_INFO_DEVICE = 1;
    /// `ur_physical_mem_info_t`: the size in bytes, as a `size_t`.
    UR_PHYSICAL_MEM_INFO_SIZE = 2;
    /// `ur_physical_mem_info_t`: a `ur_physical_mem_properties_t`.
    UR_PHYSICAL_MEM_INFO_PROPERTIES = 3;
    /// `ur_physical_mem_info_t`: the number of references, as a `uint32_t`.
    UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT = 4;
    /// `ur_device_type_t`: devices of all types.
    UR_DEVICE_TYPE_ALL = 2;
    /// `ur_device_info_t`: the `ur_platform_handle_t` that a device belongs to.
    UR_DEVICE_INFO_PLATFORM = 63;
    /// `ur_device_info_t`: the name, a text that ends with a zero byte.
    UR_DEVICE_INFO_NAME = 66;
    /// `ur_device_info_t`: the `ur_device_handle_t` that a sub-device is a part of; null for another device.
    UR_DEVICE_INFO_PARENT_DEVICE = 75;
    /// `ur_device_info_t`: whether USM can be shared, as a `ur_bool_t`.
    UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP = 0x2023;
    /// `ur_device_info_t`: whether physical memory can be shared, as a `ur_bool_t`.
    UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP = 0x2024;
    /// `ur_device_info_t`: whether an event can be signalled again, as a `ur_bool_t`.
    UR_DEVICE_INFO_REUSABLE_EVENTS_SUPPORT_EXP = 0x2025;
    /// `ur_device_info_t`: whether events can be shared, as a `ur_bool_t`.
    UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP = 0x2026;
}
