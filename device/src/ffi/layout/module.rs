//! Structures of the module and kernel calls.

use std::ffi::{c_char, c_void};

/// `ze_module_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModuleDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `format`: 0 SPIR-V, 1 native.
    pub format: u32,
    /// `inputSize`, in bytes.
    pub input_size: usize,
    /// `pInputModule`.
    pub input: *const u8,
    /// `pBuildFlags`: a C string, or NULL.
    pub build_flags: *const c_char,
    /// `pConstants`, or NULL.
    pub constants: *const ModuleConstants,
}

/// `ze_module_constants_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModuleConstants {
    /// `numConstants`.
    pub count: u32,
    /// `pConstantIds`.
    pub ids: *const u32,
    /// `pConstantValues`.
    pub values: *const *const u8,
}

/// `ze_module_program_exp_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModuleProgramDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `count`.
    pub count: u32,
    /// `inputSizes`, in bytes.
    pub input_sizes: *const usize,
    /// `pInputModules`.
    pub inputs: *const *const u8,
    /// `pBuildFlags`: C strings, or NULL.
    pub build_flags: *const *const c_char,
    /// `pConstants`, or NULL.
    pub constants: *const *const ModuleConstants,
}

/// `ze_module_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModuleProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`: imports bit 0.
    pub flags: u32,
}

/// `ze_kernel_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`.
    pub flags: u32,
    /// `pKernelName`.
    pub name: *const c_char,
}

/// `ze_kernel_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `numKernelArgs`.
    pub num_kernel_args: u32,
    /// `requiredGroupSizeX`, `requiredGroupSizeY` and `requiredGroupSizeZ`.
    pub required_group_size: [u32; 3],
    /// `requiredNumSubGroups`.
    pub required_num_sub_groups: u32,
    /// `requiredSubgroupSize`.
    pub required_subgroup_size: u32,
    /// `maxSubgroupSize`.
    pub max_subgroup_size: u32,
    /// `maxNumSubgroups`.
    pub max_num_subgroups: u32,
    /// `localMemSize`, in bytes.
    pub local_mem_size: u32,
    /// `privateMemSize`, in bytes.
    pub private_mem_size: u32,
    /// `spillMemSize`, in bytes.
    pub spill_mem_size: u32,
    /// `uuid`: of the kernel, and of the module.
    pub uuid: [u8; 32],
}

/// `ze_kernel_preferred_group_size_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelPreferredGroupSize {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `preferredMultiple`.
    pub preferred_multiple: u32,
}

/// `ze_kernel_max_group_size_properties_ext_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelMaxGroupSize {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `maxGroupSize`.
    pub max_group_size: u32,
}

/// `ze_command_list_append_launch_kernel_param_cooperative_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LaunchCooperativeDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `isCooperative`.
    pub is_cooperative: u8,
}

/// `ze_group_count_t` and `ze_group_size_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Extent {
    /// In x.
    pub x: u32,
    /// In y.
    pub y: u32,
    /// In z.
    pub z: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<ModuleDesc>(), 56);
        assert_eq!(offset_of!(ModuleDesc, input_size), 24);
        assert_eq!(size_of::<ModuleConstants>(), 24);
        assert_eq!(size_of::<ModuleProgramDesc>(), 56);
        assert_eq!(offset_of!(ModuleProgramDesc, input_sizes), 24);
        assert_eq!(size_of::<ModuleProperties>(), 24);
        assert_eq!(size_of::<KernelDesc>(), 32);
        assert_eq!(offset_of!(KernelDesc, name), 24);
        assert_eq!(size_of::<KernelProperties>(), 96);
        assert_eq!(offset_of!(KernelProperties, uuid), 60);
        assert_eq!(size_of::<KernelPreferredGroupSize>(), 24);
        assert_eq!(size_of::<KernelMaxGroupSize>(), 24);
        assert_eq!(size_of::<LaunchCooperativeDesc>(), 24);
        assert_eq!(size_of::<Extent>(), 12);
    }
}
