//! Modules, which do not exist, because the device runs no kernels.
//!
//! An application meets `zeModuleCreate` first, so that function logs the reason. Must never return a module.

use crate::ffi::result::ZeResult;
use crate::platform::log;

/// `zeModuleCreate` (ze_api.h). Always `UNSUPPORTED_FEATURE`, without a build log.
pub extern "C" fn create() -> ZeResult {
    log::note("zeModuleCreate: this device copies and fills memory; it does not run kernels");
    ZeResult::UNSUPPORTED_FEATURE
}
