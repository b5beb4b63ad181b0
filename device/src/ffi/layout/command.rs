//! Structures of the queue, list and fence calls.

use std::ffi::c_void;

use super::module::Extent;

/// `ze_command_queue_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandQueueDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `ordinal`.
    pub ordinal: u32,
    /// `index`.
    pub index: u32,
    /// `flags`.
    pub flags: u32,
    /// `mode`.
    pub mode: u32,
    /// `priority`.
    pub priority: u32,
}

/// `ze_command_list_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandListDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `commandQueueGroupOrdinal`.
    pub command_queue_group_ordinal: u32,
    /// `flags`.
    pub flags: u32,
}

/// `ze_fence_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FenceDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
}

/// `ze_mutable_command_id_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableCommandIdDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
}

/// `ze_mutable_commands_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableCommandsDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
}

/// `ze_mutable_kernel_argument_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableKernelArgument {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `commandId`.
    pub command_id: u64,
    /// `argIndex`.
    pub arg_index: u32,
    /// `argSize`.
    pub arg_size: usize,
    /// `pArgValue`.
    pub value: *const u8,
}

/// `ze_mutable_group_count_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableGroupCount {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `commandId`.
    pub command_id: u64,
    /// `pGroupCount`.
    pub group_count: *const Extent,
}

/// `ze_mutable_group_size_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableGroupSize {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `commandId`.
    pub command_id: u64,
    /// `groupSizeX`, `groupSizeY` and `groupSizeZ`.
    pub size: [u32; 3],
}

/// `ze_mutable_global_offset_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MutableGlobalOffset {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `commandId`.
    pub command_id: u64,
    /// `offsetX`, `offsetY` and `offsetZ`.
    pub offset: [u32; 3],
}

/// `ze_record_replay_graph_ext_dump_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GraphDumpDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `mode`.
    pub mode: u32,
}

/// `ze_copy_region_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CopyRegion {
    /// `originX`.
    pub origin_x: u32,
    /// `originY`.
    pub origin_y: u32,
    /// `originZ`.
    pub origin_z: u32,
    /// `width`.
    pub width: u32,
    /// `height`.
    pub height: u32,
    /// `depth`.
    pub depth: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<CommandQueueDesc>(), 40);
        assert_eq!(size_of::<CommandListDesc>(), 24);
        assert_eq!(size_of::<FenceDesc>(), 24);
        assert_eq!(size_of::<MutableCommandIdDesc>(), 24);
        assert_eq!(size_of::<MutableCommandsDesc>(), 24);
        assert_eq!(size_of::<MutableKernelArgument>(), 48);
        assert_eq!(size_of::<MutableGroupCount>(), 32);
        assert_eq!(size_of::<MutableGroupSize>(), 40);
        assert_eq!(size_of::<MutableGlobalOffset>(), 40);
        assert_eq!(offset_of!(MutableKernelArgument, arg_index), 24);
        assert_eq!(size_of::<GraphDumpDesc>(), 24);
        assert_eq!(size_of::<CopyRegion>(), 24);
        assert_eq!(offset_of!(CommandQueueDesc, priority), 32);
        assert_eq!(offset_of!(CommandListDesc, flags), 20);
    }
}
