//! Whether calls are to be observed by XPTI, and what that takes: variables that libsycl reads in its constructors.
//!
//! It costs every call something, so it is only switched on where no table reaches an adapter, or on demand.

use std::{env, ffi::OsString, path::PathBuf};

/// Switches XPTI on (`xpti_trace_framework.hpp`).
pub(super) const ENABLE: &str = "XPTI_TRACE_ENABLE";
/// Names the library through which producers and subscribers meet.
pub(super) const DISPATCHER: &str = "XPTI_FRAMEWORK_DISPATCHER";
/// Names the subscribers, separated by commas.
pub(super) const SUBSCRIBERS: &str = "XPTI_SUBSCRIBERS";
/// Names the layers of a loader of Unified Runtime, separated by commas.
pub(super) const LAYERS: &str = "UR_ENABLE_LAYERS";
/// The layer that shows calls to XPTI.
pub(super) const LAYER: &str = "UR_LAYER_TRACING";

/// The variable of the shim that says how calls reach it.
const ENTRY: &str = "URSCOPE_ENTRY";
/// Its value that has XPTI used for all adapters.
const ONLY_XPTI: &str = "xpti";
/// The variables by which a loader finds adapters elsewhere: these are libraries, whose tables are reached.
const OTHER_ADAPTERS: [&str; 2] = ["UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH"];

/// The error that the user wants XPTI, and there is no dispatcher.
const NO_DISPATCHER: &str = "URSCOPE_ENTRY=xpti needs libxptifw.so, which is not beside the libsycl that the program would load; name it \
                             in XPTI_FRAMEWORK_DISPATCHER, or unset URSCOPE_ENTRY";

/// The dispatcher of XPTI for a program whose calls are to be observed by it; `None` for one whose adapters are reached
/// otherwise. `find` searches for it: where the user wants it, or else where nothing else reaches the adapters.
pub(super) fn dispatcher(find: impl FnOnce(bool) -> Option<PathBuf>) -> Result<Option<PathBuf>, &'static str> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let is_wanted = variable(ENTRY).is_some_and(|entry| entry == ONLY_XPTI);
    if !is_wanted && OTHER_ADAPTERS.into_iter().any(|name| variable(name).is_some()) {
        return Ok(None);
    }
    let named = variable(DISPATCHER).map(OsString::into).filter(|_| is_wanted);
    let dispatcher = named.or_else(|| find(is_wanted));
    if is_wanted && dispatcher.is_none() { Err(NO_DISPATCHER) } else { Ok(dispatcher) }
}
