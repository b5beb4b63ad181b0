//! The structures of ze_api.h that cross the C boundary, and the numbers that go with them.
//!
//! Only what this device reads or writes, in the header's order, with the header's names in Rust spelling. Sizes and
//! offsets must never differ from the header's: the tests at the end of each file check them.

pub mod command;
pub mod device;
pub mod driver;
pub mod event;
pub mod memory;
pub mod module;

/// The API version of this device, 1.17 (`ze_api_version_t`: major in the upper half, minor in the lower).
pub const API_VERSION: u32 = (1 << 16) + 17;

/// `ze_structure_type_t`: the values that this device knows.
pub mod stype {
    /// `ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES`.
    pub const DEVICE_PROPERTIES: u32 = 0x3;
    /// `ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC`.
    pub const EXTERNAL_MEMORY_EXPORT_DESC: u32 = 0x18;
    /// `ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD`.
    pub const EXTERNAL_MEMORY_IMPORT_FD: u32 = 0x19;
    /// `ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD`.
    pub const EXTERNAL_MEMORY_EXPORT_FD: u32 = 0x1a;
    /// `ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES`.
    pub const KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES: u32 = 0x21;
    /// `ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES`.
    pub const FLOAT_ATOMIC_EXT_PROPERTIES: u32 = 0x1_0003;
    /// `ZE_STRUCTURE_TYPE_EU_COUNT_EXT`.
    pub const EU_COUNT_EXT: u32 = 0x1_0005;
    /// `ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT`.
    pub const DEVICE_IP_VERSION_EXT: u32 = 0x1_000f;
    /// `ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES`.
    pub const KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES: u32 = 0x1_0013;
    /// `ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES`.
    pub const DEVICE_READONLY_MEMORY_EXT_PROPERTIES: u32 = 0x1_0015;
    /// `ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC`.
    pub const RELAXED_ALLOCATION_LIMITS_EXP_DESC: u32 = 0x2_0001;
    /// `ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC`.
    pub const MODULE_PROGRAM_EXP_DESC: u32 = 0x2_0002;
    /// `ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2`: the timer resolution is in cycles per second.
    pub const DEVICE_PROPERTIES_1_2: u32 = 0x2_0006;
    /// `ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC`.
    pub const COUNTER_BASED_EVENT_POOL_EXP_DESC: u32 = 0x2_0014;
    /// `ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC`.
    pub const LAUNCH_COOPERATIVE_DESC: u32 = 0x2_0036;
    /// `ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC`.
    pub const EXTERNAL_SYNC_ALLOCATION_DESC: u32 = 0x2_003b;
    /// `ZE_STRUCTURE_TYPE_DEVICE_EVENT_PROPERTIES`.
    pub const DEVICE_EVENT_PROPERTIES: u32 = 0x2_003e;
    /// `ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_AGGREGATE_STORAGE_DESC`.
    pub const EXTERNAL_AGGREGATE_STORAGE_DESC: u32 = 0x2_003f;
}
