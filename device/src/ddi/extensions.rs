//! The functions that the driver offers by name only, beyond ze_api.h.

use std::ffi::c_char;
use std::ptr;

use super::lookup_extension;
use crate::discovery::driver::{self, Driver};
use crate::ffi::handles::Handle;
use crate::ffi::result::{ZeResult, call};
use crate::ffi::{In, Out};
use crate::platform::log;

/// `zeDriverGetExtensionFunctionAddress` (ze_api.h). `INVALID_ARGUMENT` and a NULL address for an unknown name.
pub extern "C" fn get_function_address(driver: Handle<Driver>, name: In<c_char>, address: Out<*const ()>) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        address.check()?;
        let name = name.text()?;
        let found = lookup_extension(&name);
        if found.is_none() {
            log::note(&format!("there is no extension function {name}"));
        }
        address.write(found.unwrap_or(ptr::null()))?;
        found.map(drop).ok_or(ZeResult::INVALID_ARGUMENT)
    })
}
