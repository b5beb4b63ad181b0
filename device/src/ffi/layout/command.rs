//! Structures of the queue, list and fence calls.

use std::ffi::c_void;

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
        assert_eq!(size_of::<CopyRegion>(), 24);
        assert_eq!(offset_of!(CommandQueueDesc, priority), 32);
        assert_eq!(offset_of!(CommandListDesc, flags), 20);
    }
}
