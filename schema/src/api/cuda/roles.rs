//! The roles of parameters that only functions of the CUDA driver have.

use crate::api::common_roles::Role;
use crate::values::Values;

roles! {
    /// A `CUdeviceptr`, which may be null.
    DevicePointer(usize) enter pointer;
    /// A `CUdevice`: the number of a device among those that the process sees.
    Ordinal(u32) enter device;
}
