//! The result codes that this device returns, and the wrapper around each C entry point.
//!
//! Every entry point runs its body through [`call`] or [`call_teardown`]. Must never let a panic unwind into C, and
//! never take a lock in a forked child.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::platform::process;

/// `ze_result_t` (ze_api.h). 0 is success; [`ZeResult::is_error`] recognises errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub struct ZeResult(pub u32);

/// What the body of an entry point returns: a value, or the code for the caller.
pub(crate) type Outcome<T = ()> = Result<T, ZeResult>;

impl ZeResult {
    /// `ZE_RESULT_SUCCESS`.
    pub const SUCCESS: Self = Self(0);
    /// `ZE_RESULT_NOT_READY`: not signalled yet, or the timeout expired.
    pub const NOT_READY: Self = Self(1);
    /// `ZE_RESULT_ERROR_DEVICE_LOST`.
    pub const DEVICE_LOST: Self = Self(0x7000_0001);
    /// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY`.
    pub const OUT_OF_HOST_MEMORY: Self = Self(0x7000_0002);
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY`.
    pub const OUT_OF_DEVICE_MEMORY: Self = Self(0x7000_0003);
    /// `ZE_RESULT_ERROR_MODULE_BUILD_FAILURE`.
    pub const MODULE_BUILD_FAILURE: Self = Self(0x7000_0004);
    /// `ZE_RESULT_ERROR_MODULE_LINK_FAILURE`.
    pub const MODULE_LINK_FAILURE: Self = Self(0x7000_0005);
    /// `ZE_RESULT_ERROR_UNINITIALIZED`.
    pub const UNINITIALIZED: Self = Self(0x7800_0001);
    /// `ZE_RESULT_ERROR_UNSUPPORTED_VERSION`.
    pub const UNSUPPORTED_VERSION: Self = Self(0x7800_0002);
    /// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`.
    pub const UNSUPPORTED_FEATURE: Self = Self(0x7800_0003);
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: Self = Self(0x7800_0004);
    /// `ZE_RESULT_ERROR_INVALID_NULL_HANDLE`.
    pub const INVALID_NULL_HANDLE: Self = Self(0x7800_0005);
    /// `ZE_RESULT_ERROR_INVALID_NULL_POINTER`.
    pub const INVALID_NULL_POINTER: Self = Self(0x7800_0007);
    /// `ZE_RESULT_ERROR_INVALID_SIZE`.
    pub const INVALID_SIZE: Self = Self(0x7800_0008);
    /// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE`.
    pub const UNSUPPORTED_SIZE: Self = Self(0x7800_0009);
    /// `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT`.
    pub const UNSUPPORTED_ALIGNMENT: Self = Self(0x7800_000a);
    /// `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT`.
    pub const INVALID_SYNCHRONIZATION_OBJECT: Self = Self(0x7800_000b);
    /// `ZE_RESULT_ERROR_INVALID_ENUMERATION`.
    pub const INVALID_ENUMERATION: Self = Self(0x7800_000c);
    /// `ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION`.
    pub const UNSUPPORTED_ENUMERATION: Self = Self(0x7800_000d);
    /// `ZE_RESULT_ERROR_INVALID_NATIVE_BINARY`.
    pub const INVALID_NATIVE_BINARY: Self = Self(0x7800_000f);
    /// `ZE_RESULT_ERROR_INVALID_GLOBAL_NAME`.
    pub const INVALID_GLOBAL_NAME: Self = Self(0x7800_0010);
    /// `ZE_RESULT_ERROR_INVALID_KERNEL_NAME`.
    pub const INVALID_KERNEL_NAME: Self = Self(0x7800_0011);
    /// `ZE_RESULT_ERROR_INVALID_FUNCTION_NAME`.
    pub const INVALID_FUNCTION_NAME: Self = Self(0x7800_0012);
    /// `ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION`.
    pub const INVALID_GROUP_SIZE_DIMENSION: Self = Self(0x7800_0013);
    /// `ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX`.
    pub const INVALID_KERNEL_ARGUMENT_INDEX: Self = Self(0x7800_0015);
    /// `ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE`.
    pub const INVALID_KERNEL_ARGUMENT_SIZE: Self = Self(0x7800_0016);
    /// `ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED`.
    pub const INVALID_MODULE_UNLINKED: Self = Self(0x7800_0018);
    /// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE`.
    pub const INVALID_COMMAND_LIST_TYPE: Self = Self(0x7800_0019);
    /// `ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE`.
    pub const INVALID_KERNEL_HANDLE: Self = Self(0x7800_001c);
    /// `ZE_RESULT_QUERY_TRUE`: the answer of a question.
    pub const QUERY_TRUE: Self = Self(0x7800_0022);
    /// `ZE_RESULT_QUERY_FALSE`: the answer of a question.
    pub const QUERY_FALSE: Self = Self(0x7800_0023);
    /// `ZE_RESULT_ERROR_INVALID_GRAPH`.
    pub const INVALID_GRAPH: Self = Self(0x7800_0024);
    /// `ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED`.
    pub const GRAPH_CAPTURE_UNSUPPORTED: Self = Self(0x7800_0025);
    /// `ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT`.
    pub const GRAPH_CAPTURE_MERGE_ATTEMPT: Self = Self(0x7800_0027);
    /// `ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING`.
    pub const COMMAND_LIST_NOT_CAPTURING: Self = Self(0x7800_0028);
    /// `ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS`.
    pub const GRAPH_UNJOINED_FORKS: Self = Self(0x7800_0029);
    /// `ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT`.
    pub const GRAPH_INTERNAL_EVENT: Self = Self(0x7800_002a);
    /// `ZE_RESULT_ERROR_UNKNOWN`.
    pub const UNKNOWN: Self = Self(0x7fff_fffe);

    /// Whether this is an error: neither `SUCCESS` nor `NOT_READY`.
    pub const fn is_error(self) -> bool {
        self.0 > 1
    }
}

/// Runs the body of an entry point. A forked child of a process that used the device gets `UNINITIALIZED`: the worker
/// threads do not exist there, and another thread may have held a lock at the fork. `DEVICE_LOST` if a kernel has
/// faulted, also while the body ran.
pub(crate) fn call(body: impl FnOnce() -> Outcome) -> ZeResult {
    if process::is_forked_child() {
        return ZeResult::UNINITIALIZED;
    }
    if process::devices_are_lost() {
        return ZeResult::DEVICE_LOST;
    }
    let result = guarded(body);
    if process::devices_are_lost() { ZeResult::DEVICE_LOST } else { result }
}

/// Like [`call`], for functions that destroy, free, put or close. A forked child gets `SUCCESS` and
/// nothing happens, so that the teardown at its exit succeeds; so does a process in which a kernel has
/// faulted, because the threads that ran it never end.
pub(crate) fn call_teardown(body: impl FnOnce() -> Outcome) -> ZeResult {
    let nothing = process::is_forked_child() || process::devices_are_lost();
    if nothing { ZeResult::SUCCESS } else { guarded(body) }
}

fn guarded(body: impl FnOnce() -> Outcome) -> ZeResult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ZeResult::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => ZeResult::UNKNOWN,
    }
}
