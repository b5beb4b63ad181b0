//! The adapter's public functions that convert its handles to those of Level Zero, and that give their properties.
//!
//! They have no rows, because they are not hooked: they come from the adapter's table getters at their first use.
//! Must never be given a handle of another adapter.

use std::{ffi::c_void, sync::OnceLock};

use urscope_schema::api::{
    Table, UrResult, constants,
    role::{Context, Device, Event},
};

use super::{driver::ZeHandle, result};
use crate::{
    backend::adapter::{ADAPTERS, registry},
    raw::args::{Arg, HandleRole},
};

/// `ur_native_handle_t` is as wide as a pointer, and the Level Zero adapters put the driver's handle into it.
type GetNative<R> = unsafe extern "C" fn(Arg<R>, *mut ZeHandle) -> UrResult;
type GetContextInfo = unsafe extern "C" fn(Arg<Context>, u32, usize, *mut c_void, *mut usize) -> UrResult;
type GetDeviceInfo = unsafe extern "C" fn(Arg<Device>, u32, usize, *mut c_void, *mut usize) -> UrResult;
type EventOfNative = unsafe extern "C" fn(ZeHandle, Arg<Context>, *const EventProperties, *mut Arg<Event>) -> UrResult;

/// `ur_event_native_properties_t`
#[repr(C)]
struct EventProperties {
    stype: u32,
    next: *mut c_void,
    owned: bool,
}

/// The functions of one adapter.
pub(crate) struct NativeFunctions {
    context: Option<GetNative<Context>>,
    context_info: Option<GetContextInfo>,
    device: Option<GetNative<Device>>,
    device_info: Option<GetDeviceInfo>,
    event: Option<GetNative<Event>>,
    make_event: Option<EventOfNative>,
}

impl NativeFunctions {
    /// The functions of adapter `via`.
    pub(crate) fn of(via: usize) -> Option<&'static Self> {
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
    pub(crate) fn context(&self, context: Arg<Context>) -> Result<ZeHandle, UrResult> {
        native(self.context, context)
    }

    /// The driver's device of an adapter's device.
    pub(crate) fn device(&self, device: Arg<Device>) -> Result<ZeHandle, UrResult> {
        native(self.device, device)
    }

    /// The driver's event of an adapter's event.
    pub(crate) fn driver_event(&self, event: Arg<Event>) -> Result<ZeHandle, UrResult> {
        native(self.event, event)
    }

    /// An event of the adapter's that wraps the driver's without owning it.
    pub(crate) fn wrap_driver_event(&self, context: Arg<Context>, native: ZeHandle) -> Result<Arg<Event>, UrResult> {
        let make = self.make_event.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let stype = constants::UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES;
        let properties = EventProperties { stype, next: std::ptr::null_mut(), owned: false };
        // SAFETY: an out-parameter may hold null before the call.
        let mut event = unsafe { Arg::new(Event(0)) };
        // SAFETY: the properties and the out-parameter are live variables.
        result::done(unsafe { make(native, context, &raw const properties, &raw mut event) })?;
        if event.null().is_some() { Err(UrResult::UNKNOWN) } else { Ok(event) }
    }

    /// The driver's device of a context's first device.
    pub(crate) fn first_device(&self, context: Arg<Context>) -> Result<ZeHandle, UrResult> {
        self.device(self.devices(context)?.first().copied().ok_or(UrResult::UNKNOWN)?)
    }

    /// The driver's device of a context's device or sub-device. INVALID_CONTEXT for another device, as from the v1
    /// adapter.
    pub(crate) fn device_in(&self, context: Arg<Context>, device: Arg<Device>) -> Result<ZeHandle, UrResult> {
        let native = self.device(device)?;
        let devices = self.devices(context)?;
        let mut whole = Some(device);
        while let Some(device) = whole {
            if devices.contains(&device) {
                return Ok(native);
            }
            whole = self.parent(device);
        }
        Err(UrResult::INVALID_CONTEXT)
    }

    /// The parent of a sub-device.
    fn parent(&self, device: Arg<Device>) -> Option<Arg<Device>> {
        let get_info = self.device_info?;
        // SAFETY: a variable for a handle may hold null before the call; null is also the answer for a root device.
        let mut parent = unsafe { Arg::new(Device(0)) };
        let (property, room) = (constants::UR_DEVICE_INFO_PARENT_DEVICE, (&raw mut parent).cast());
        // SAFETY: the variable has the size that is passed; the pointer for the answer's size may be null.
        let result = unsafe { get_info(device, property, size_of::<Arg<Device>>(), room, std::ptr::null_mut()) };
        (result.is_success() && parent.null().is_none()).then_some(parent)
    }

    /// The devices of a context.
    pub(crate) fn devices(&self, context: Arg<Context>) -> Result<Vec<Arg<Device>>, UrResult> {
        let get_info = self.context_info.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let property = constants::UR_CONTEXT_INFO_DEVICES;
        let mut size = 0;
        // SAFETY: without a buffer, only the answer's size is returned, in a live variable.
        result::done(unsafe { get_info(context, property, 0, std::ptr::null_mut(), &raw mut size) })?;
        // SAFETY: a variable for a handle may hold null before the call.
        let mut devices = vec![unsafe { Arg::new(Device(0)) }; size / size_of::<Arg<Device>>()];
        let room = size_of_val(&*devices);
        // SAFETY: the buffer has this size; the pointer for the answer's size may be null.
        result::done(unsafe { get_info(context, property, room, devices.as_mut_ptr().cast(), std::ptr::null_mut()) })?;
        Ok(devices)
    }

    /// Whether a release of the context would be the last.
    pub(crate) fn is_last_reference(&self, context: Arg<Context>) -> bool {
        let mut count = 0_u32;
        let (property, room) = (constants::UR_CONTEXT_INFO_REFERENCE_COUNT, (&raw mut count).cast());
        self.context_info.is_some_and(|get_info| {
            // SAFETY: the variable has the size that is passed; the pointer for the answer's size may be null.
            let result = unsafe { get_info(context, property, size_of::<u32>(), room, std::ptr::null_mut()) };
            result.is_success()
        }) && count == 1
    }
}

fn native<R: HandleRole>(function: Option<GetNative<R>>, handle: Arg<R>) -> Result<ZeHandle, UrResult> {
    result::not_null(handle)?;
    let function = function.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
    let mut native = ZeHandle::NULL;
    // SAFETY: the handle is one of this adapter's, and the out-parameter a live variable.
    result::done(unsafe { function(handle, &raw mut native) })?;
    Ok(native)
}
