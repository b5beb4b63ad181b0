//! What an adapter reports about its devices: their names, and their indices in their platform.
//!
//! These functions have no rows, so they come from the adapter's table getter. The device must be one that the
//! adapter has just accepted. Must never be called while a lock is held.

use std::{ffi::c_void, ptr::null_mut, slice, sync::OnceLock};

use urscope_schema::api::{ResultCode, Table, role::Device, unified_runtime::constants};
use urscope_schema::trace::records;

use super::ADAPTERS;
use super::registry::{self, GetInfo};
use crate::raw::args::Arg;

/// `ur_platform_handle_t`, which is only passed back to its adapter.
type Platform = *mut c_void;
/// A function of an adapter may throw.
type Get = unsafe extern "C-unwind" fn(Platform, u32, u32, *mut Arg<Device>, *mut u32) -> ResultCode;
/// `ur_native_handle_t` is as wide as a pointer.
type GetNative = unsafe extern "C-unwind" fn(Arg<Device>, *mut usize) -> ResultCode;
type Release = unsafe extern "C-unwind" fn(Arg<Device>) -> ResultCode;

/// The most devices of a platform.
const DEVICE_LIMIT: u32 = 1024;

/// The size of the buffer for a name. The longest name of a Level Zero driver has 256 bytes.
const NAME_SIZE: usize = 1024;

struct Functions {
    get: Get,
    get_info: GetInfo<Arg<Device>>,
    release: Release,
    get_native: GetNative,
}

impl Functions {
    /// The functions of adapter `via`, if it has all of them.
    fn for_adapter(via: usize) -> Option<&'static Self> {
        static ALL: [OnceLock<Option<Functions>>; ADAPTERS] = [const { OnceLock::new() }; ADAPTERS];
        ALL.get(via)?.get_or_init(|| Self::found(via)).as_ref()
    }

    fn found(via: usize) -> Option<Self> {
        // SAFETY: these slots of `ur_device_dditable_t` are `pfnGet`, `pfnGetInfo`, `pfnRelease` and
        // `pfnGetNativeHandle` in all releases (`ur_ddi.h`).
        unsafe {
            Some(Self {
                get: registry::function(via, Table::Device, 0)?,
                get_info: registry::function(via, Table::Device, 1)?,
                release: registry::function(via, Table::Device, 3)?,
                get_native: registry::function(via, Table::Device, 6)?,
            })
        }
    }

    /// The devices of a device's platform, in order; `None` if the adapter does not answer.
    fn listed(&self, device: Arg<Device>) -> Option<Vec<Arg<Device>>> {
        let mut platform: Platform = null_mut();
        let property = constants::UR_DEVICE_INFO_PLATFORM;
        let room = slice::from_mut(&mut platform);
        // SAFETY: the property is a platform.
        unsafe { registry::property(self.get_info, device, property, room) }.ok()?;
        if platform.is_null() {
            return None;
        }
        let mut count = 0;
        // SAFETY: without a buffer, only the number of handles is returned, in a live variable.
        let result = unsafe { (self.get)(platform, constants::UR_DEVICE_TYPE_ALL, 0, null_mut(), &raw mut count) };
        if !result.is_success() || count == 0 || count > DEVICE_LIMIT {
            return None;
        }
        // SAFETY: a variable for a handle may hold null before the call.
        let mut devices = vec![unsafe { Arg::new(Device(0)) }; count as usize];
        let room = devices.as_mut_ptr();
        // SAFETY: the buffer has room for `count` handles; the pointer for their number may be null.
        let result = unsafe { (self.get)(platform, constants::UR_DEVICE_TYPE_ALL, count, room, null_mut()) };
        if !result.is_success() {
            return None;
        }
        for listed in devices.iter().copied().filter(|listed| listed.null().is_none()) {
            // SAFETY: each handle in the list comes with a reference, which the caller must release (`urDeviceGet`).
            unsafe { (self.release)(listed) };
        }
        Some(devices)
    }

    /// The handle of a device in the interface below the adapter.
    fn native(&self, device: Arg<Device>) -> Option<records::Hex> {
        let mut native = 0;
        // SAFETY: the device is one of this adapter's, and the out-parameter a live variable.
        let result = unsafe { (self.get_native)(device, &raw mut native) };
        Some(records::Hex(native as u64)).filter(|_| result.is_success() && native != 0)
    }

    /// The name of a device; empty if the adapter returns none.
    fn name(&self, device: Arg<Device>) -> String {
        let mut bytes = [0_u8; NAME_SIZE];
        // SAFETY: the property is text.
        let size = unsafe { registry::property(self.get_info, device, constants::UR_DEVICE_INFO_NAME, &mut bytes) };
        name_in(bytes.get(..size.unwrap_or_default()).unwrap_or_default())
    }
}

/// The text up to the zero byte, limited to the length of a record's text.
fn name_in(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut name = String::from_utf8_lossy(text).trim().to_owned();
    name.truncate(name.floor_char_boundary(records::Device::NAME_LIMIT));
    name
}

/// The descriptions that adapter `via` gives of a device and of the others of its platform. They lack a device that
/// the adapter does not describe.
pub fn describe(via: usize, device: Arg<Device>) -> Vec<records::Device> {
    let Some(functions) = Functions::for_adapter(via) else { return Vec::new() };
    let listed = functions.listed(device).unwrap_or_default();
    let outside = Some((None, device)).filter(|_| !listed.contains(&device));
    let all = (0..).map(Some).zip(listed.iter().copied()).chain(outside);
    let described = all.filter(|(_, device)| device.null().is_none()).map(|(index, device)| {
        let handle = records::Hex(device.get().0 as u64);
        let native = functions.native(device);
        records::Device { via: via as u64, device: handle, native, index, name: functions.name(device) }
    });
    described.filter(|described| described.index.is_some() || !described.name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_its_zero_byte_and_at_the_limit() {
        assert_eq!(name_in(b"Software Device\0garbage"), "Software Device");
        assert_eq!(name_in(b"  unterminated "), "unterminated");
        assert_eq!(name_in(b"\xff\0"), "\u{fffd}");
        assert_eq!(name_in(b""), "");
        let long = "ü".repeat(records::Device::NAME_LIMIT);
        assert_eq!(name_in(long.as_bytes()).len(), records::Device::NAME_LIMIT);
    }
}
