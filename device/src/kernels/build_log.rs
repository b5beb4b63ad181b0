//! Build logs of modules.

use std::{ffi::c_char, sync::Arc};

use crate::ffi::Out;
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{ZeResult, call, call_teardown};

/// The object of a `ze_module_build_log_handle_t`: text that ends with a zero byte.
pub struct BuildLog(Vec<u8>);

object!(BuildLog);

impl BuildLog {
    /// Returns a log to a caller that asks for one.
    pub(crate) fn give(text: &str, to: Out<Handle<Self>>) {
        if !to.is_null() {
            let bytes = text.bytes().filter(|byte| *byte != 0).chain([0]).collect();
            to.write_optional(Handle::register(Arc::new(Self(bytes))));
        }
    }
}

/// `zeModuleBuildLogDestroy` (ze_api.h).
pub extern "C" fn destroy(log: Handle<BuildLog>) -> ZeResult {
    call_teardown(|| log.retire().map(drop))
}

/// `zeModuleBuildLogGetString` (ze_api.h). The size includes the zero byte at the end.
pub extern "C" fn get_string(log: Handle<BuildLog>, size: Out<usize>, text: Out<c_char>) -> ZeResult {
    call(|| text.copy_bytes(size, &log.get()?.0))
}
