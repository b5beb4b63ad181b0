//! The adapter's public functions that convert its handles to those of Level Zero, and that give their properties.
//!
//! They have no rows, because they are not hooked: they come from the adapter's table getters at their first use.
//! Must never be given a handle of another adapter.

use std::{ffi::c_void, slice, sync::OnceLock};

use urscope_schema::api::role::{Context, Device, Event};
use urscope_schema::api::{ResultCode, Table, unified_runtime::constants};

use super::{driver::ZeHandle, result};
use crate::backend::adapter::ADAPTERS;
use crate::backend::adapter::registry::{self, GetInfo};
use crate::raw::args::{Arg, HandleRole};

/// `ur_native_handle_t` is as wide as a pointer, and the Level Zero adapters put the driver's handle into it.
type GetNative<R> = unsafe extern "C" fn(Arg<R>, *mut ZeHandle) -> ResultCode;
type EventOfNative =
    unsafe extern "C" fn(ZeHandle, Arg<Context>, *const EventProperties, *mut Arg<Event>) -> ResultCode;

/// `ur_event_native_properties_t`
#[repr(C)]
struct EventProperties {
    stype: u32,
    next: *mut c_void,
    owned: bool,
}

pub(crate) struct NativeFunctions {
    context: Option<GetNative<Context>>,
    context_info: Option<GetInfo<Arg<Context>>>,
    device: Option<GetNative<Device>>,
    device_info: Option<GetInfo<Arg<Device>>>,
    event: Option<GetNative<Event>>,
    make_event: Option<EventOfNative>,
}

impl NativeFunctions {
    /// The functions of adapter `via`.
    pub(crate) fn for_adapter(via: usize) -> Option<&'static Self> {
        static ALL: [OnceLock<NativeFunctions>; ADAPTERS] = [const { OnceLock::new() }; ADAPTERS];
        Some(ALL.get(via)?.get_or_init(|| {
            // SAFETY: these slots hold functions of these types (`ur_ddi.h`): `ur_pfnContextGetNativeHandle_t`,
            // `ur_pfnContextGetInfo_t`, `ur_pfnDeviceGetNativeHandle_t`, `ur_pfnDeviceGetInfo_t`,
            // `ur_pfnEventGetNativeHandle_t` and `ur_pfnEventCreateWithNativeHandle_t`.
            unsafe {
                Self {
                    context: registry::function(via, Table::Context, 4),
                    context_info: registry::function(via, Table::Context, 3),
                    device: registry::function(via, Table::Device, 6),
                    device_info: registry::function(via, Table::Device, 1),
                    event: registry::function(via, Table::Event, 5),
                    make_event: registry::function(via, Table::Event, 6),
                }
            }
        }))
    }

    /// The driver's context of an adapter's context.
    pub(crate) fn context(&self, context: Arg<Context>) -> Result<ZeHandle, ResultCode> {
        native(self.context, context)
    }

    /// The driver's device of an adapter's device.
    pub(crate) fn device(&self, device: Arg<Device>) -> Result<ZeHandle, ResultCode> {
        native(self.device, device)
    }

    /// The driver's event of an adapter's event.
    pub(crate) fn driver_event(&self, event: Arg<Event>) -> Result<ZeHandle, ResultCode> {
        native(self.event, event)
    }

    /// An event of the adapter's that wraps the driver's without owning it.
    pub(crate) fn wrap_driver_event(&self, context: Arg<Context>, native: ZeHandle) -> Result<Arg<Event>, ResultCode> {
        let make = self.make_event.ok_or(ResultCode::UNSUPPORTED_FEATURE)?;
        let stype = constants::UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES;
        let properties = EventProperties { stype, next: std::ptr::null_mut(), owned: false };
        // SAFETY: an out-parameter may hold null before the call.
        let mut event = unsafe { Arg::new(Event(0)) };
        // SAFETY: the properties and the out-parameter are live variables.
        result::done(unsafe { make(native, context, &raw const properties, &raw mut event) })?;
        if event.null().is_some() { Err(ResultCode::UNKNOWN) } else { Ok(event) }
    }

    /// The driver's device of a context's first device.
    pub(crate) fn first_device(&self, context: Arg<Context>) -> Result<ZeHandle, ResultCode> {
        self.device(self.devices(context)?.first().copied().ok_or(ResultCode::UNKNOWN)?)
    }

    /// The driver's device of a context's device or sub-device. INVALID_CONTEXT for another device, as from the v1
    /// adapter.
    pub(crate) fn device_in(&self, context: Arg<Context>, device: Arg<Device>) -> Result<ZeHandle, ResultCode> {
        let native = self.device(device)?;
        let devices = self.devices(context)?;
        let mut whole = Some(device);
        while let Some(device) = whole {
            if devices.contains(&device) {
                return Ok(native);
            }
            whole = self.parent(device);
        }
        Err(ResultCode::INVALID_CONTEXT)
    }

    /// The parent of a sub-device.
    fn parent(&self, device: Arg<Device>) -> Option<Arg<Device>> {
        let get_info = self.device_info?;
        // SAFETY: a variable for a handle may hold null before the call; null is also the answer for a root device.
        let mut parent = unsafe { Arg::new(Device(0)) };
        let property = constants::UR_DEVICE_INFO_PARENT_DEVICE;
        let room = slice::from_mut(&mut parent);
        // SAFETY: the property is a device.
        unsafe { registry::property(get_info, device, property, room) }.ok()?;
        Some(parent).filter(|parent| parent.null().is_none())
    }

    pub(crate) fn devices(&self, context: Arg<Context>) -> Result<Vec<Arg<Device>>, ResultCode> {
        let get_info = self.context_info.ok_or(ResultCode::UNSUPPORTED_FEATURE)?;
        let property = constants::UR_CONTEXT_INFO_DEVICES;
        // SAFETY: the property is an array of devices.
        let size = unsafe { registry::property::<_, Arg<Device>>(get_info, context, property, &mut []) }?;
        // SAFETY: a variable for a handle may hold null before the call.
        let mut devices = vec![unsafe { Arg::new(Device(0)) }; size / size_of::<Arg<Device>>()];
        // SAFETY: as above.
        unsafe { registry::property(get_info, context, property, &mut devices) }?;
        Ok(devices)
    }

    /// Whether a release of the context would be the last.
    pub(crate) fn is_last_reference(&self, context: Arg<Context>) -> bool {
        let mut count = 0_u32;
        let property = constants::UR_CONTEXT_INFO_REFERENCE_COUNT;
        let room = slice::from_mut(&mut count);
        let Some(get_info) = self.context_info else { return false };
        // SAFETY: the property is a number of this size.
        unsafe { registry::property(get_info, context, property, room) }.is_ok() && count == 1
    }
}

fn native<R: HandleRole>(function: Option<GetNative<R>>, handle: Arg<R>) -> Result<ZeHandle, ResultCode> {
    result::not_null(handle)?;
    let function = function.ok_or(ResultCode::UNSUPPORTED_FEATURE)?;
    let mut native = ZeHandle::NULL;
    // SAFETY: the handle is one of this adapter's, and the out-parameter a live variable.
    result::done(unsafe { function(handle, &raw mut native) })?;
    Ok(native)
}
