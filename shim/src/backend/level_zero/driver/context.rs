//! Temporary contexts, to try what a driver supports.

use std::ptr::{null, null_mut};

use urscope_schema::api::ResultCode;

use super::{ContextDesc, Driver, ZeHandle, structs::stype};

impl Driver {
    /// Calls a function with a temporary context of the device's driver.
    pub(crate) fn in_a_context(
        &self,
        device: ZeHandle,
        attempt: impl FnOnce(ZeHandle) -> Result<(), ResultCode>,
    ) -> Result<(), ResultCode> {
        // SAFETY: `list` passes live variables.
        let drivers = list(|count, first| unsafe { self.drivers(count, first) })?;
        let is_its = |driver: &ZeHandle| {
            // SAFETY: as above.
            list(|count, first| unsafe { self.devices(*driver, count, first) })
                .is_ok_and(|devices| devices.contains(&device))
        };
        // A sub-device is in no list: with one driver, it belongs to that.
        let of_device = drivers.iter().find(|driver| is_its(driver));
        let driver = of_device.or_else(|| drivers.first().filter(|_| drivers.len() == 1));
        let driver = driver.copied().ok_or(ResultCode::UNSUPPORTED_FEATURE)?;
        let desc = ContextDesc { stype: stype::CONTEXT_DESC, next: null(), flags: 0 };
        let mut context = ZeHandle::NULL;
        // SAFETY: the description and the out-parameter are live variables.
        unsafe { self.create_context(driver, &raw const desc, &raw mut context) }?;
        let result = attempt(context);
        // SAFETY: it was made above, and nothing in it is used any more.
        let _ = unsafe { self.destroy_context(context) };
        result
    }
}

/// The list that a function returns in two calls: the first gives the number, the second the elements.
fn list(ask: impl Fn(*mut u32, *mut ZeHandle) -> Result<(), ResultCode>) -> Result<Vec<ZeHandle>, ResultCode> {
    let mut count = 0;
    ask(&raw mut count, null_mut())?;
    let mut found = vec![ZeHandle::NULL; count as usize];
    ask(&raw mut count, found.as_mut_ptr())?;
    found.truncate(count as usize);
    Ok(found)
}
