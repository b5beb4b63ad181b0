//! The roles of parameters that only functions of the CUDA driver have.

use super::constants::{MEM_HANDLE_TYPE_FABRIC, MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
use crate::api::common_roles::{OutParams, Role, Sources};
use crate::values::Values;

roles! {
    /// A `CUdeviceptr`, which may be null.
    DevicePointer(usize) enter pointer;
    /// A `CUdevice`: the number of a device among those that the process sees.
    Ordinal(u32) enter device;
    /// A `size_t` that counts numbers of 16 bits.
    Halves(usize) {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.size = (self.0 as u64).checked_mul(2);
        }
    };
    /// A `size_t` that counts numbers of 32 bits.
    Words(usize) {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.size = (self.0 as u64).checked_mul(4);
        }
    };
    /// A `CUfunction` or `CUkernel` that is launched.
    Kernel(usize) source kernel;
    /// A `void **`: the addresses of a kernel's arguments. Of the pointers among these, those into shared memory are recorded.
    KernelParams(usize) source kernel_params;
    /// A `void **`: options of a launch, one of which may be a buffer with all arguments in the place of their addresses.
    KernelExtra(usize) source kernel_extra;
    /// A `const CUDA_MEMCPY2D *`.
    Copy2d(usize) source copy_2d;
    /// A `const CUDA_MEMCPY3D *` or `const CUDA_MEMCPY3D_PEER *`, which have the same fields where they are read.
    Copy3d(usize) source copy_3d;
    /// A `const CUmemAllocationProp *`.
    AllocationProperties(usize) source allocation_properties;
    /// A `CUmemAllocationHandleType`. A call is recorded if it is about a descriptor or bytes.
    HandleType(u32) enter property source handle_type {
        #[inline]
        fn out(self, places: &mut OutParams) {
            places.handle_type = self.0;
        }

        #[inline]
        fn watched(self) -> bool {
            [MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, MEM_HANDLE_TYPE_FABRIC].contains(&self.0)
        }
    };
    /// A `void *` that receives a descriptor or bytes.
    OutExported(usize) {
        #[inline]
        fn out(self, places: &mut OutParams) {
            places.exported = self.0;
        }
    };
    /// A `void *` that is a descriptor, or is to bytes.
    Imported(usize) source imported;
    /// A `CUmemPoolPtrExportData *` that is imported.
    ImportedPointer(usize) source handle_bytes {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.property = Some(IMPORTS);
        }
    };
}

/// The property that says of an allocation that it imports memory of another process.
pub(super) const IMPORTS: u64 = 1;
