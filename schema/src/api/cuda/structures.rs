//! What only the CUDA driver can read of a call: the kinds of [`Structures`].

use crate::api::common_roles::Structures;

/// The address of a `CUDA_MEMCPY2D`.
pub const COPY_2D: u8 = 0;
/// The address of a `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`.
pub const COPY_3D: u8 = 1;
/// A `CUfunction` or `CUkernel` that is launched.
pub const KERNEL: u8 = 2;
/// The address of a list of addresses, one for each of its parameters.
pub const KERNEL_PARAMS: u8 = 3;
/// The address of a list of options, which may name a buffer with all of them.
pub const KERNEL_EXTRA: u8 = 4;
/// The address of a `CUmemAllocationProp`.
pub const ALLOCATION_PROPERTIES: u8 = 5;
/// A `CUmemAllocationHandleType`.
pub const HANDLE_TYPE: u8 = 6;
/// A descriptor, or the address of a handle of 64 bytes, as the type says.
pub const IMPORTED: u8 = 7;
/// The address of a `CUmemPoolPtrExportData`.
pub const IMPORTED_POINTER: u8 = 8;
/// The flags of a new stream.
pub const STREAM_FLAGS: u8 = 9;
/// The address of a `CUlaunchConfig`.
pub const LAUNCH_CONFIGURATION: u8 = 10;
/// The address that receives a descriptor, or a handle of 64 bytes, as the type says.
pub const OUT_EXPORTED: u8 = Structures::WRITTEN + 11;
