//! Structures of the driver and context calls.

use std::ffi::c_void;

/// `ze_driver_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DriverProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// Identifies the driver.
    pub uuid: [u8; 16],
    /// Version of the driver; the Unified Runtime reads the low 16 bits.
    pub driver_version: u32,
}

/// `ze_driver_ipc_properties_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DriverIpcProperties {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *mut c_void,
    /// `flags`: memory bit 0, event pools bit 1.
    pub flags: u32,
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

/// `ze_init_driver_type_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct InitDriverTypeDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: GPU bit 0, NPU bit 1; all ones for any driver.
    pub flags: u32,
}

/// `ze_context_desc_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ContextDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `flags`: none is defined.
    pub flags: u32,
}

/// `zel_tracer_desc_t` (zel_tracing_api.h).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TracerDesc {
    /// `stype`.
    pub s_type: u32,
    /// `pNext`.
    pub p_next: *const c_void,
    /// `pUserData`: passed to the callbacks.
    pub user_data: usize,
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

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<DriverProperties>(), 40);
        assert_eq!(offset_of!(DriverProperties, driver_version), 32);
        assert_eq!(size_of::<DriverIpcProperties>(), 24);
        assert_eq!(size_of::<DriverExtensionProperties>(), 260);
        assert_eq!(size_of::<InitDriverTypeDesc>(), 24);
        assert_eq!(size_of::<ContextDesc>(), 24);
        assert_eq!(size_of::<TracerDesc>(), 24);
        assert_eq!(size_of::<ComponentVersion>(), 80);
    }
}
