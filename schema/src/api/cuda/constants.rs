//! The numbers of `cuda.h` (13.0) that urscope uses, under the names they have there without `CU_`.
//!
//! `schema/tests/schema/cuda_header.rs` compares them with the header.

/// `CUevent_flags`: the event can be shared.
pub const EVENT_INTERPROCESS: u64 = 4;
