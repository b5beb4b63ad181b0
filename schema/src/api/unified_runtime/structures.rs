//! What only Unified Runtime can read of a call: the kinds of [`Structures`].

use crate::api::common_roles::Structures;

/// The address of a `ur_usm_desc_t`.
pub const USM_DESC: u8 = 0;
/// The address of a list of `ur_exp_kernel_arg_properties_t`.
pub const KERNEL_ARGS: u8 = 1;
/// The number of its elements.
pub const KERNEL_ARG_COUNT: u8 = 2;
/// The address of a `ur_bool_t` (one byte) that the callee writes.
pub const OUT_BOOL: u8 = Structures::WRITTEN + 3;
