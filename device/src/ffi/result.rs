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

/// The errors of ze_api.h, without `ZE_RESULT_ERROR_`.
macro_rules! errors {
    ($($name:ident = $code:literal;)*) => {
        impl ZeResult {
            $(
                #[doc = concat!("`ZE_RESULT_ERROR_", stringify!($name), "`.")]
                pub const $name: Self = Self($code);
            )*
        }
    };
}

errors! {
    DEVICE_LOST = 0x7000_0001;
    OUT_OF_HOST_MEMORY = 0x7000_0002;
    OUT_OF_DEVICE_MEMORY = 0x7000_0003;
    MODULE_BUILD_FAILURE = 0x7000_0004;
    MODULE_LINK_FAILURE = 0x7000_0005;
    UNINITIALIZED = 0x7800_0001;
    UNSUPPORTED_VERSION = 0x7800_0002;
    UNSUPPORTED_FEATURE = 0x7800_0003;
    INVALID_ARGUMENT = 0x7800_0004;
    INVALID_NULL_HANDLE = 0x7800_0005;
    INVALID_NULL_POINTER = 0x7800_0007;
    INVALID_SIZE = 0x7800_0008;
    UNSUPPORTED_SIZE = 0x7800_0009;
    UNSUPPORTED_ALIGNMENT = 0x7800_000a;
    INVALID_SYNCHRONIZATION_OBJECT = 0x7800_000b;
    INVALID_ENUMERATION = 0x7800_000c;
    UNSUPPORTED_ENUMERATION = 0x7800_000d;
    INVALID_NATIVE_BINARY = 0x7800_000f;
    INVALID_GLOBAL_NAME = 0x7800_0010;
    INVALID_KERNEL_NAME = 0x7800_0011;
    INVALID_FUNCTION_NAME = 0x7800_0012;
    INVALID_GROUP_SIZE_DIMENSION = 0x7800_0013;
    INVALID_KERNEL_ARGUMENT_INDEX = 0x7800_0015;
    INVALID_KERNEL_ARGUMENT_SIZE = 0x7800_0016;
    INVALID_MODULE_UNLINKED = 0x7800_0018;
    INVALID_COMMAND_LIST_TYPE = 0x7800_0019;
    INVALID_KERNEL_HANDLE = 0x7800_001c;
    INVALID_GRAPH = 0x7800_0024;
    GRAPH_CAPTURE_UNSUPPORTED = 0x7800_0025;
    GRAPH_CAPTURE_MERGE_ATTEMPT = 0x7800_0027;
    COMMAND_LIST_NOT_CAPTURING = 0x7800_0028;
    GRAPH_UNJOINED_FORKS = 0x7800_0029;
    GRAPH_INTERNAL_EVENT = 0x7800_002a;
    UNKNOWN = 0x7fff_fffe;
}

impl ZeResult {
    /// `ZE_RESULT_SUCCESS`.
    pub const SUCCESS: Self = Self(0);
    /// `ZE_RESULT_NOT_READY`: not signalled yet, or the timeout expired.
    pub const NOT_READY: Self = Self(1);
    /// `ZE_RESULT_QUERY_TRUE`: the answer of a question.
    pub const QUERY_TRUE: Self = Self(0x7800_0022);
    /// `ZE_RESULT_QUERY_FALSE`: the answer of a question.
    pub const QUERY_FALSE: Self = Self(0x7800_0023);

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

/// Entry points that write one value of a live object: the C name, the name here, the object, and the value.
macro_rules! getters {
    ($($(#[$doc:meta])* $c_name:ident: $name:ident($object:ident: $kind:ident) -> $type:ty { $value:expr })*) => {$(
        #[doc = concat!("`", stringify!($c_name), "` (ze_api.h).")]
        $(#[$doc])*
        pub extern "C" fn $name($object: Handle<$kind>, value: Out<$type>) -> ZeResult {
            call(|| {
                let $object = $object.get()?;
                value.write($value)
            })
        }
    )*};
}
pub(crate) use getters;

/// Entry points that fill a structure about a live object.
macro_rules! properties {
    ($($(#[$doc:meta])* $c_name:ident: $name:ident($object:ident: $kind:ident, $out:ident: $type:ty) $edit:block)*) => {$(
        #[doc = concat!("`", stringify!($c_name), "` (ze_api.h).")]
        $(#[$doc])*
        pub extern "C" fn $name($object: Handle<$kind>, properties: Out<$type>) -> ZeResult {
            call(|| {
                let $object = $object.get()?;
                properties.edit(|$out| $edit)
            })
        }
    )*};
}
pub(crate) use properties;
