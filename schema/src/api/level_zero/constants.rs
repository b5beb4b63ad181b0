//! The numbers of `ze_api.h` (1.17) that urscope uses, under the names they have there without `ZE_`.
//!
//! `schema/tests/schema/level_zero_header.rs` compares them with the header.

/// `ze_structure_type_t` of a `ze_external_memory_export_desc_t`: memory is made so that it can be exported.
pub const EXTERNAL_MEMORY_EXPORT_DESC: u64 = 0x18;
/// `ze_structure_type_t` of a `ze_external_memory_import_fd_t`: memory is imported by a descriptor.
pub const EXTERNAL_MEMORY_IMPORT_FD: u64 = 0x19;
/// `ze_structure_type_t` of a `ze_external_memory_export_fd_t`: a descriptor of memory is exported.
pub const EXTERNAL_MEMORY_EXPORT_FD: u64 = 0x1a;
/// `ze_structure_type_t` of a `ze_driver_ddi_handles_ext_properties_t`: whether handles begin with the driver's tables.
pub const DRIVER_DDI_HANDLES_EXT_PROPERTIES: u64 = 0x2_0027;
/// `ze_driver_ddi_handle_ext_flag_t`: they do.
pub const DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED: u32 = 1 << 0;
/// `ze_event_pool_flag_t`: the pool can be shared.
pub const EVENT_POOL_FLAG_IPC: u64 = 1 << 1;
/// `ze_event_counter_based_flag_t`: the event can be shared.
pub const EVENT_COUNTER_BASED_FLAG_IPC: u64 = 1 << 3;
