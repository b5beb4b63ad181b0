//! The numbers of `cuda.h` (13.0) that urscope uses, under the names they have there without `CU_`.
//!
//! `schema/tests/schema/cuda_header.rs` compares them with the header.

/// `CUevent_flags`: the event can be shared.
pub const EVENT_INTERPROCESS: u64 = 4;
/// `CUstream_flags`: the stream does not wait for the default stream, nor that one for it.
pub const STREAM_NON_BLOCKING: u32 = 1;
/// The handle of a thread's own default stream. Those of the process are 0 and 1.
pub const STREAM_PER_THREAD: usize = 2;
/// `CUmemAllocationHandleType`: a descriptor.
pub const MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: u32 = 1;
/// `CUmemAllocationHandleType`: bytes, for the processes of several machines.
pub const MEM_HANDLE_TYPE_FABRIC: u32 = 8;
