//! Contexts of our own, for trying what a driver can do.

use std::ptr::{null, null_mut};

use urscope_schema::api::UrResult;

use super::{ContextDesc, Driver, ZeHandle, structs::stype};

impl Driver {
    /// Tries something in a context of our own, on the driver of that device.
    pub(crate) fn in_a_context(
        &self,
        device: ZeHandle,
        attempt: impl FnOnce(ZeHandle) -> Result<(), UrResult>,
    ) -> Result<(), UrResult> {
        // SAFETY: `list` passes live variables.
        let drivers = list(|count, first| unsafe { self.drivers(count, first) })?;
        let is_its = |driver: &ZeHandle| {
            // SAFETY: as above.
            list(|count, first| unsafe { self.devices(*driver, count, first) })
                .is_ok_and(|devices| devices.contains(&device))
        };
        // A part of a device is in no list: with one driver it can only be that one's.
        let of_device = drivers.iter().find(|driver| is_its(driver));
        let driver = of_device.or_else(|| drivers.first().filter(|_| drivers.len() == 1));
        let driver = driver.copied().ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let desc = ContextDesc { stype: stype::CONTEXT_DESC, next: null(), flags: 0 };
        let mut context = ZeHandle::NULL;
        // SAFETY: the description and the out-parameter are live variables.
        unsafe { self.create_context(driver, &raw const desc, &raw mut context) }?;
        let result = attempt(context);
        // SAFETY: it was just made, and nothing is left in it.
        let _ = unsafe { self.destroy_context(context) };
        result
    }
}

/// All that a function of two calls lists: how many there are, then which.
fn list(ask: impl Fn(*mut u32, *mut ZeHandle) -> Result<(), UrResult>) -> Result<Vec<ZeHandle>, UrResult> {
    let mut count = 0;
    ask(&raw mut count, null_mut())?;
    let mut found = vec![ZeHandle::NULL; count as usize];
    ask(&raw mut count, found.as_mut_ptr())?;
    found.truncate(count as usize);
    Ok(found)
}
