//! The roles of parameters that only functions of HIP have.

use crate::api::common_roles::{Role, Sources};
use crate::values::Values;

roles! {
    /// A `void *` of device memory, which may be null.
    HipPointer(usize) enter pointer;
    /// A `hipStream_t` that a command goes to.
    Stream(usize) source queue;
    /// A `hipMemcpyKind`, which is not recorded.
    CopyKind(u32) {
        const IS_SEEN: bool = false;
    };
}

/// A `dim3`, which C passes by value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    sizes: [u32; 3],
}

impl Role for Dim3 {
    const IS_SEEN: bool = false;

    fn of_word(word: u64) -> Self {
        Self { sizes: [word as u32, (word >> 32) as u32, 1] }
    }
}
