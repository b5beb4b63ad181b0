//! The adapter's public functions that lead from its handles to those of Level Zero, and what else we ask it.
//!
//! They are not in the rows, because we stand in front of none of them: they are taken from the adapter's own table getters
//! the first time they are needed. Must never be given a handle of another adapter.

use std::{ffi::c_void, sync::OnceLock};

use urscope_schema::api::{Table, UrResult, constants};

use super::driver::ZeHandle;
use crate::{call::ADAPTERS, entry::ddi};

/// `ur_native_handle_t` is a word.
type GetNative = extern "C" fn(usize, *mut usize) -> UrResult;
type GetInfo = extern "C" fn(usize, u32, usize, *mut c_void, *mut usize) -> UrResult;

type EventOfNative = extern "C" fn(usize, usize, *const EventProperties, *mut usize) -> UrResult;

/// `ur_event_native_properties_t`
#[repr(C)]
struct EventProperties {
    stype: u32,
    next: *mut c_void,
    owned: bool,
}

/// The functions of one adapter.
pub(crate) struct Native {
    context: Option<GetNative>,
    context_info: Option<GetInfo>,
    device: Option<GetNative>,
    event: Option<GetNative>,
    make_event: Option<EventOfNative>,
}

impl Native {
    /// Those of the adapter of that number.
    pub(crate) fn of(via: usize) -> Option<&'static Self> {
        static ALL: [OnceLock<Native>; ADAPTERS] = [const { OnceLock::new() }; ADAPTERS];
        Some(ALL.get(via)?.get_or_init(|| {
            let get_native = |table, slot| {
                // SAFETY: the slots asked for hold a `ur_pfn…GetNativeHandle_t`, which has this signature (`ur_ddi.h`).
                ddi::function(via, table, slot)
                    .map(|found| unsafe { std::mem::transmute::<*mut c_void, GetNative>(found) })
            };
            Self {
                context: get_native(Table::Context, 4),
                device: get_native(Table::Device, 6),
                event: get_native(Table::Event, 5),
                make_event: ddi::function(via, Table::Event, 6)
                    // SAFETY: this slot holds a `ur_pfnEventCreateWithNativeHandle_t`, which has this signature (`ur_ddi.h`).
                    .map(|found| unsafe { std::mem::transmute::<*mut c_void, EventOfNative>(found) }),
                context_info: ddi::function(via, Table::Context, 3)
                    // SAFETY: this slot holds a `ur_pfnContextGetInfo_t`, which has this signature (`ur_ddi.h`).
                    .map(|found| unsafe { std::mem::transmute::<*mut c_void, GetInfo>(found) }),
            }
        }))
    }

    /// The driver's context behind the adapter's.
    pub(crate) fn context(&self, context: usize) -> Result<ZeHandle, UrResult> {
        ask(self.context, context)
    }

    /// The driver's device behind the adapter's.
    pub(crate) fn device(&self, device: usize) -> Result<ZeHandle, UrResult> {
        ask(self.device, device)
    }

    /// The driver's event behind the adapter's.
    pub(crate) fn event_behind(&self, event: usize) -> Result<ZeHandle, UrResult> {
        ask(self.event, event)
    }

    /// An event of the adapter's around one of the driver's, which it does not end with its own.
    pub(crate) fn event_around(&self, context: usize, native: ZeHandle) -> Result<usize, UrResult> {
        let make = self.make_event.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let properties = EventProperties {
            stype: constants::UR_STRUCTURE_TYPE_EVENT_NATIVE_PROPERTIES,
            next: std::ptr::null_mut(),
            owned: false,
        };
        let mut event = 0;
        super::result::done(make(native.expose_provenance(), context, &raw const properties, &raw mut event))?;
        if event == 0 { Err(UrResult::UNKNOWN) } else { Ok(event) }
    }

    /// The driver's device behind the first of a context's.
    pub(crate) fn first_device(&self, context: usize) -> Result<ZeHandle, UrResult> {
        let ask = self.context_info.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let mut size = 0;
        super::result::done(ask(context, constants::UR_CONTEXT_INFO_DEVICES, 0, std::ptr::null_mut(), &raw mut size))?;
        let mut devices = vec![0_usize; size / size_of::<usize>()];
        let place = devices.as_mut_ptr().cast();
        super::result::done(ask(context, constants::UR_CONTEXT_INFO_DEVICES, size, place, std::ptr::null_mut()))?;
        self.device(devices.first().copied().unwrap_or(0))
    }

    /// Whether a release of the context would be the last.
    pub(crate) fn is_last_reference(&self, context: usize) -> bool {
        let mut count = 0_u32;
        let place = (&raw mut count).cast();
        self.context_info.is_some_and(|ask| {
            ask(context, constants::UR_CONTEXT_INFO_REFERENCE_COUNT, size_of::<u32>(), place, std::ptr::null_mut())
                .is_success()
        }) && count == 1
    }
}

fn ask(function: Option<GetNative>, handle: usize) -> Result<ZeHandle, UrResult> {
    super::result::handle(handle)?;
    let function = function.ok_or(UrResult::UNSUPPORTED_FEATURE)?;
    let mut native = 0;
    match function(handle, &raw mut native) {
        UrResult::SUCCESS => Ok(std::ptr::with_exposed_provenance_mut(native)),
        result => Err(result),
    }
}
