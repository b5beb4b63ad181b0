//! Modules: there are none, because there are no kernels.
//!
//! The one entry point that an application meets first says so in words. Must never hand out a module.

use crate::ffi::result::ZeResult;
use crate::platform::log;

/// `zeModuleCreate` (ze_api.h): always `UNSUPPORTED_FEATURE`, and no build log.
pub extern "C" fn create() -> ZeResult {
    log::note("zeModuleCreate: this device copies and fills memory, it does not run kernels");
    ZeResult::UNSUPPORTED_FEATURE
}
