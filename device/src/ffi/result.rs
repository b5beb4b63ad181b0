//! The result codes that this device returns, and the wrapper around each C entry point.
//!
//! Every entry point runs its body through [`call`] or [`call_teardown`]. Must never let a panic unwind into C, and
//! never take a lock in a forked child.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::platform::{log, process};

/// `ze_result_t` (ze_api.h). 0 is success; [`ZeResult::is_error`] recognises errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub struct ZeResult(pub u32);

/// What the body of an entry point returns: a value, or the code for the caller.
pub(crate) type Outcome<T = ()> = Result<T, ZeResult>;

/// The errors of ze_api.h, without `ZE_RESULT_ERROR_`, and what each says where nothing more is known.
macro_rules! errors {
    ($($name:ident = $code:literal $meaning:literal;)*) => {
        impl ZeResult {
            $(
                #[doc = concat!("`ZE_RESULT_ERROR_", stringify!($name), "`.")]
                pub const $name: Self = Self($code);
            )*

            /// The name and the meaning of an error that this device returns.
            pub(crate) const fn described(self) -> Option<(&'static str, &'static str)> {
                match self.0 {
                    $($code => Some((concat!("ZE_RESULT_ERROR_", stringify!($name)), $meaning)),)*
                    _ => None,
                }
            }
        }
    };
}

errors! {
    DEVICE_LOST = 0x7000_0001 "a kernel has faulted";
    OUT_OF_HOST_MEMORY = 0x7000_0002 "the host has no memory or no descriptor left";
    OUT_OF_DEVICE_MEMORY = 0x7000_0003 "the device has no memory left, or what was passed cannot be imported";
    MODULE_BUILD_FAILURE = 0x7000_0004 "the module cannot be built";
    MODULE_LINK_FAILURE = 0x7000_0005 "the modules cannot be linked";
    UNINITIALIZED = 0x7800_0001 "the device was not initialised";
    UNSUPPORTED_VERSION = 0x7800_0002 "this version is not supported";
    UNSUPPORTED_FEATURE = 0x7800_0003 "the device does not support this";
    INVALID_ARGUMENT = 0x7800_0004 "an argument is not valid";
    INVALID_NULL_HANDLE = 0x7800_0005 "a handle is NULL";
    INVALID_NULL_POINTER = 0x7800_0007 "a pointer is NULL";
    INVALID_SIZE = 0x7800_0008 "a size or a count is not valid";
    UNSUPPORTED_SIZE = 0x7800_0009 "a size is not supported";
    UNSUPPORTED_ALIGNMENT = 0x7800_000a "an alignment is not supported";
    INVALID_SYNCHRONIZATION_OBJECT = 0x7800_000b "an event or a fence does not belong to this call";
    INVALID_ENUMERATION = 0x7800_000c "an argument has a value or a flag that its enumeration does not have";
    UNSUPPORTED_ENUMERATION = 0x7800_000d "a value or a flag is not supported";
    INVALID_NATIVE_BINARY = 0x7800_000f "the native binary is not one of this device";
    INVALID_GLOBAL_NAME = 0x7800_0010 "the module has no variable of this name";
    INVALID_KERNEL_NAME = 0x7800_0011 "the module has no kernel of this name";
    INVALID_FUNCTION_NAME = 0x7800_0012 "the module has no function of this name";
    INVALID_GROUP_SIZE_DIMENSION = 0x7800_0013 "the group size is not allowed";
    INVALID_KERNEL_ARGUMENT_INDEX = 0x7800_0015 "the kernel has no argument with this index";
    INVALID_KERNEL_ARGUMENT_SIZE = 0x7800_0016 "the argument of the kernel has another size";
    INVALID_MODULE_UNLINKED = 0x7800_0018 "the module has imports that were not linked";
    INVALID_COMMAND_LIST_TYPE = 0x7800_0019 "the command list is of another type";
    INVALID_KERNEL_HANDLE = 0x7800_001c "the kernel is not one of this list";
    INVALID_GRAPH = 0x7800_0024 "the graph is not valid, or is still recorded";
    GRAPH_CAPTURE_UNSUPPORTED = 0x7800_0025 "a captured list does not allow this call";
    GRAPH_CAPTURE_MERGE_ATTEMPT = 0x7800_0027 "two captures would become one";
    COMMAND_LIST_NOT_CAPTURING = 0x7800_0028 "the list is not captured";
    GRAPH_UNJOINED_FORKS = 0x7800_0029 "a list that the capture forked to was not joined, or has appended work since";
    GRAPH_INTERNAL_EVENT = 0x7800_002a "the event belongs to a capture";
    UNKNOWN = 0x7fff_fffe "the device has failed";
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

    /// This code, for a reason that is said with `ZE_SOFT_LOG=1`.
    #[cold]
    pub(crate) fn because<S: Into<String>>(self, reason: impl FnOnce() -> S) -> Self {
        log::keep_reason(self.0, reason);
        self
    }
}

/// Runs the body of an entry point. A forked child of a process that used the device gets `UNINITIALIZED`: the worker
/// threads do not exist there, and another thread may have held a lock at the fork. `DEVICE_LOST` if a kernel has
/// faulted, also while the body ran.
pub(crate) fn call(body: impl FnOnce() -> Outcome) -> ZeResult {
    if process::is_forked_child() {
        return ZeResult::UNINITIALIZED.because(|| "this process was forked by one that had used the device");
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
