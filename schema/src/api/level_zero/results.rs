//! The result codes of Level Zero: `ze_result_t` of `ze_api.h`, 1.17, each with the code of Unified Runtime that has
//! its meaning.

use crate::api::interface::{NamedResult, ResultCode};

macro_rules! results {
    ($($name:ident = $code:literal as $meaning:ident,)*) => {
        /// The codes that urscope names.
        pub(super) const RESULTS: &[NamedResult] = &[
            NamedResult { code: 0, name: "ZE_RESULT_SUCCESS", meaning: ResultCode::SUCCESS },
            $(NamedResult { code: $code, name: concat!("ZE_RESULT_ERROR_", stringify!($name)), meaning: ResultCode::$meaning },)*
        ];
    };
}

#[rustfmt::skip]
results! {
    DEVICE_LOST = 0x7000_0001 as DEVICE_LOST, OUT_OF_HOST_MEMORY = 0x7000_0002 as OUT_OF_HOST_MEMORY,
    OUT_OF_DEVICE_MEMORY = 0x7000_0003 as OUT_OF_DEVICE_MEMORY,
    DEVICE_REQUIRES_RESET = 0x7000_0006 as DEVICE_REQUIRES_RESET,
    DEVICE_IN_LOW_POWER_STATE = 0x7000_0007 as DEVICE_IN_LOW_POWER_STATE,
    INSUFFICIENT_PERMISSIONS = 0x7001_0000 as INVALID_OPERATION, NOT_AVAILABLE = 0x7001_0001 as INVALID_OPERATION,
    UNINITIALIZED = 0x7800_0001 as UNINITIALIZED, UNSUPPORTED_VERSION = 0x7800_0002 as UNSUPPORTED_VERSION,
    UNSUPPORTED_FEATURE = 0x7800_0003 as UNSUPPORTED_FEATURE, INVALID_ARGUMENT = 0x7800_0004 as INVALID_ARGUMENT,
    INVALID_NULL_HANDLE = 0x7800_0005 as INVALID_NULL_HANDLE,
    HANDLE_OBJECT_IN_USE = 0x7800_0006 as HANDLE_OBJECT_IN_USE,
    INVALID_NULL_POINTER = 0x7800_0007 as INVALID_NULL_POINTER, INVALID_SIZE = 0x7800_0008 as INVALID_SIZE,
    UNSUPPORTED_SIZE = 0x7800_0009 as UNSUPPORTED_SIZE, UNSUPPORTED_ALIGNMENT = 0x7800_000a as UNSUPPORTED_ALIGNMENT,
    INVALID_ENUMERATION = 0x7800_000c as INVALID_ENUMERATION,
    UNSUPPORTED_ENUMERATION = 0x7800_000d as UNSUPPORTED_ENUMERATION, UNKNOWN = 0x7fff_fffe as UNKNOWN,
}
