//! The structures of ze_api.h that cross the C boundary, and the numbers that go with them.
//!
//! Only what this device reads or writes. The compiler checks all sizes, and the offsets that are given, against
//! the header's.

use std::ffi::c_void;

/// The API version of this device, 1.17 (`ze_api_version_t`: major in the upper half, minor in the lower).
pub const API_VERSION: u32 = (1 << 16) + 17;

/// `ze_structure_type_t`: the values that this device knows, beyond the `S_TYPE` of the structures.
pub mod stype {
    /// `ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES`.
    pub const DEVICE_PROPERTIES: u32 = 0x3;
    /// `ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2`: the timer resolution is in cycles per second.
    pub const DEVICE_PROPERTIES_1_2: u32 = 0x2_0006;
    /// `ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC`.
    pub const RELAXED_ALLOCATION_LIMITS_EXP_DESC: u32 = 0x2_0001;
    /// `ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC`.
    pub const COUNTER_BASED_EVENT_POOL_EXP_DESC: u32 = 0x2_0014;
    /// `ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC`.
    pub const MUTABLE_COMMAND_LIST_EXP_DESC: u32 = 0x2_0016;
}

/// What every extensible structure begins with (`ze_base_properties_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Base {
    /// The type of the structure (`ze_structure_type_t`).
    pub s_type: u32,
    /// The next structure, or NULL.
    pub p_next: *mut c_void,
}

/// A structure with a `pNext` chain.
///
/// # Safety
/// It must begin with the members of [`Base`].
pub unsafe trait Extensible: Copy {}

/// A structure that extends other structures.
///
/// # Safety
/// Every structure with this `stype` must be one of these (ze_api.h).
pub unsafe trait Extension: Extensible {
    /// Its `stype`.
    const S_TYPE: u32;
}

// SAFETY: these are its members.
unsafe impl Extensible for Base {}

/// Defines structures that begin with the members of [`Base`]: each with its `stype` if it extends others, its size,
/// its other members, and the offsets of some, in bytes.
macro_rules! structures {
    ($(
        $(#[$doc:meta])*
        $name:ident $(= $s_type:literal)?, $size:literal bytes {
            $($(#[$note:meta])* $member:ident $(@ $offset:literal)?: $type:ty),* $(,)?
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name {
            pub s_type: u32,
            pub p_next: *mut c_void,
            $($(#[$note])* pub $member: $type,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $($(assert!(offset_of!($name, $member) == $offset);)?)*
        };

        // SAFETY: it begins with these members.
        unsafe impl Extensible for $name {}

        $(
            // SAFETY: ze_structure_type_t gives this value to this structure only.
            unsafe impl Extension for $name {
                const S_TYPE: u32 = $s_type;
            }
        )?
    )*};
}

#[allow(missing_docs, reason = "members have the names and meanings of ze_api.h")]
mod structures;

pub use structures::*;
