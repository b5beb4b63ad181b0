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
