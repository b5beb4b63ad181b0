//! The roles of parameters that only functions of the CUDA driver have.

use super::constants::{MEM_HANDLE_TYPE_FABRIC, MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, STREAM_PER_THREAD};
use super::structures;
use crate::api::common_roles::{Role, Sources};
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
    /// A `CUstream`. The default streams of the process and of its threads are one for urscope.
    StreamHandle(usize) {
        #[inline]
        fn source(self, sources: &mut Sources) {
            sources.queue = if self.0 <= STREAM_PER_THREAD { 0 } else { self.0 };
        }
    };
    /// A `CUstream *` that receives a new stream.
    OutStream(usize) source new_queue;
    /// The flags of a new stream.
    StreamFlags(u32) structure STREAM_FLAGS;
    /// A `const CUlaunchConfig *`, which names the stream of a launch.
    LaunchConfiguration(usize) structure LAUNCH_CONFIGURATION;
    /// A `CUfunction` or `CUkernel` that is launched.
    Kernel(usize) structure KERNEL;
    /// A `void **`: the addresses of a kernel's arguments. Of the pointers among these, those into shared memory are
    /// recorded.
    KernelParams(usize) structure KERNEL_PARAMS;
    /// A `void **`: options of a launch, one of which may be a buffer with all arguments in the place of their
    /// addresses.
    KernelExtra(usize) structure KERNEL_EXTRA;
    /// A `const CUDA_MEMCPY2D *`.
    Copy2d(usize) structure COPY_2D;
    /// A `const CUDA_MEMCPY3D *` or `const CUDA_MEMCPY3D_PEER *`, which have the same fields where they are read.
    Copy3d(usize) structure COPY_3D;
    /// A `const CUmemAllocationProp *`.
    AllocationProperties(usize) structure ALLOCATION_PROPERTIES;
    /// A `CUmemAllocationHandleType`. A call is recorded if it is about a descriptor or bytes.
    HandleType(u32) enter property structure HANDLE_TYPE {
        #[inline]
        fn watched(self) -> bool {
            [MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, MEM_HANDLE_TYPE_FABRIC].contains(&self.0)
        }
    };
    /// A `void *` that receives a descriptor or bytes.
    OutExported(usize) structure OUT_EXPORTED;
    /// A `void *` that is a descriptor, or is to bytes.
    Imported(usize) structure IMPORTED;
    /// A `CUmemPoolPtrExportData *` that is imported.
    ImportedPointer(usize) structure IMPORTED_POINTER {
        #[inline]
        fn enter(self, values: &mut Values) {
            values.property = Some(IMPORTS);
        }
    };
}

/// The property that says of an allocation that it imports memory of another process.
pub(super) const IMPORTS: u64 = 1;
