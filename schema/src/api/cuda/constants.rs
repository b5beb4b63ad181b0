//! The numbers of `cuda.h` (13.0) that urscope uses, under the names they have there without `CU_`.
//!
//! `schema/tests/schema/cuda_header.rs` compares them with the header.

/// `CUevent_flags`: the event can be shared.
pub const EVENT_INTERPROCESS: u64 = 4;
/// `CUmemAllocationHandleType`: a descriptor.
pub const MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: u32 = 1;
/// `CUmemAllocationHandleType`: bytes, for the processes of several machines.
pub const MEM_HANDLE_TYPE_FABRIC: u32 = 8;
