//! The result codes of HIP.

use crate::api::interface::{NamedResult, ResultCode};

pub(super) const RESULTS: &[NamedResult] = &[
    NamedResult { code: 0, name: "hipSuccess", meaning: ResultCode::SUCCESS },
    NamedResult { code: 1, name: "hipErrorInvalidValue", meaning: ResultCode::INVALID_VALUE },
    NamedResult { code: 2, name: "hipErrorOutOfMemory", meaning: ResultCode::OUT_OF_DEVICE_MEMORY },
    NamedResult { code: 3, name: "hipErrorNotInitialized", meaning: ResultCode::UNINITIALIZED },
    NamedResult { code: 400, name: "hipErrorInvalidHandle", meaning: ResultCode::INVALID_ARGUMENT },
    NamedResult { code: 999, name: "hipErrorUnknown", meaning: ResultCode::UNKNOWN },
];
