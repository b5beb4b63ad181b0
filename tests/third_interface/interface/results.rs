//! The result codes of the third interface, whose numbers mean something else in Unified Runtime.

use crate::api::interface::{NamedResult, UrResult};

pub(super) const RESULTS: &[NamedResult] = &[
    NamedResult { code: 0, name: "THIRD_SUCCESS", meaning: UrResult::SUCCESS },
    NamedResult { code: 1, name: "THIRD_UNKNOWN_HANDLE", meaning: UrResult::INVALID_VALUE },
    NamedResult { code: 2, name: "THIRD_NOT_OPEN", meaning: UrResult::INVALID_ARGUMENT },
];
