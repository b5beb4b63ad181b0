//! The result codes of HIP.

use crate::api::interface::{NamedResult, UrResult};

pub(super) const RESULTS: &[NamedResult] = &[
    NamedResult { code: 0, name: "hipSuccess", meaning: UrResult::SUCCESS },
    NamedResult { code: 1, name: "hipErrorInvalidValue", meaning: UrResult::INVALID_VALUE },
    NamedResult { code: 2, name: "hipErrorOutOfMemory", meaning: UrResult::OUT_OF_DEVICE_MEMORY },
    NamedResult { code: 3, name: "hipErrorNotInitialized", meaning: UrResult::UNINITIALIZED },
    NamedResult { code: 400, name: "hipErrorInvalidHandle", meaning: UrResult::INVALID_ARGUMENT },
    NamedResult { code: 999, name: "hipErrorUnknown", meaning: UrResult::UNKNOWN },
];
