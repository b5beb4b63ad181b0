//! The one driver, what it holds, and the entry points about it.
//!
//! Everything begins here: the first initialisation builds the platform, which then stays for the life of the process.
//! Must never list an extension that is not implemented.

use std::ffi::c_char;
use std::sync::{Arc, LazyLock};

use crate::ddi::{API_VERSION, lookup_extension};
use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::ffi;
use crate::ffi::handles::{Handle, Object, Registry};
use crate::ffi::layout::driver::{
    DriverExtensionProperties, DriverIpcProperties, DriverProperties, InitDriverTypeDesc,
};
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{In, Out};
use crate::platform::budget::Budget;
use crate::platform::log;
use crate::platform::process;
use crate::platform::settings;

/// Low half: build number. The Unified Runtime offers event IPC from 38646 up.
const DRIVER_VERSION: u32 = (1 << 24) + (17 << 16) + 40_000;
/// `ZE_IPC_PROPERTY_FLAG_MEMORY` and `_EVENT_POOL`.
const SHARED: u32 = 0b11;
/// `ZE_INIT_FLAG_GPU_ONLY` and `ZE_INIT_DRIVER_TYPE_FLAG_GPU`.
const GPU: u32 = 1;

/// The driver.
pub struct Driver {
    // A type without size would have no address of its own, and so no handle.
    _identity: u8,
}

impl Object for Driver {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<Driver> = Registry::new();
        &LIVE
    }
}

/// Driver and devices of this process.
struct Instance {
    driver: Handle<Driver>,
    devices: Vec<Arc<Device>>,
    host_memory: Arc<Budget>,
    default_context: Handle<Context>,
}

static INSTANCE: LazyLock<Instance> = LazyLock::new(|| {
    process::watch_forks();
    let settings = settings::get();
    let devices: Vec<_> = (0..settings.devices).map(|index| Arc::new(Device::new(index, settings))).collect();
    for device in &devices {
        Handle::register(Arc::clone(device));
    }
    Instance {
        driver: Handle::register(Arc::new(Driver { _identity: 0 })),
        devices,
        host_memory: Budget::new(physical_memory()),
        default_context: Handle::register(Arc::new(Context::new())),
    }
});

/// All devices, in order.
pub(crate) fn devices() -> &'static [Arc<Device>] {
    &INSTANCE.devices
}

/// The budget of host allocations: the memory of the machine.
pub(crate) fn host_memory() -> &'static Arc<Budget> {
    &INSTANCE.host_memory
}

/// `zeInit` (ze_api.h).
pub extern "C" fn init(flags: u32) -> ZeResult {
    call(|| {
        if flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        LazyLock::force(&INSTANCE);
        // Only an NPU was asked for: there is none.
        if flags != 0 && flags & GPU == 0 { Err(ZeResult::UNINITIALIZED) } else { Ok(()) }
    })
}

/// `zeInitDrivers` (ze_api.h).
pub extern "C" fn init_drivers(
    count: Out<u32>,
    drivers: Out<Handle<Driver>>,
    desc: In<InitDriverTypeDesc>,
) -> ZeResult {
    call(|| {
        let flags = desc.read()?.flags;
        if flags == 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let fitting = if flags & GPU == 0 { &[][..] } else { std::slice::from_ref(&INSTANCE.driver) };
        ffi::enumerate(count, drivers, fitting, |place, driver| place.write(*driver))
    })
}

/// `zeDriverGet` (ze_api.h).
pub extern "C" fn get(count: Out<u32>, drivers: Out<Handle<Driver>>) -> ZeResult {
    call(|| ffi::enumerate(count, drivers, &[INSTANCE.driver], |place, driver| place.write(*driver)))
}

/// `zeDriverGetApiVersion` (ze_api.h).
pub extern "C" fn get_api_version(driver: Handle<Driver>, version: Out<u32>) -> ZeResult {
    call(|| driver.get().and_then(|_| version.write(API_VERSION)))
}

/// `zeDriverGetProperties` (ze_api.h).
pub extern "C" fn get_properties(driver: Handle<Driver>, properties: Out<DriverProperties>) -> ZeResult {
    call(|| {
        driver.get()?;
        properties.edit(|out| {
            out.uuid = *b"urscope ze soft\0";
            out.driver_version = DRIVER_VERSION;
        })
    })
}

/// `zeDriverGetIpcProperties` (ze_api.h).
pub extern "C" fn get_ipc_properties(driver: Handle<Driver>, properties: Out<DriverIpcProperties>) -> ZeResult {
    call(|| driver.get().and_then(|_| properties.edit(|out| out.flags = SHARED)))
}

/// `zeDriverGetExtensionProperties` (ze_api.h): no extension is listed.
pub extern "C" fn get_extension_properties(
    driver: Handle<Driver>,
    count: Out<u32>,
    properties: Out<DriverExtensionProperties>,
) -> ZeResult {
    call(|| {
        driver.get()?;
        ffi::enumerate(count, properties, &[], |place, item| place.write(*item))
    })
}

/// `zeDriverGetExtensionFunctionAddress` (ze_api.h): `INVALID_ARGUMENT` and NULL for a name that is not known.
pub extern "C" fn get_extension_function_address(
    driver: Handle<Driver>,
    name: In<c_char>,
    address: Out<*const ()>,
) -> ZeResult {
    call(|| {
        driver.get()?;
        address.check()?;
        let name = name.text()?;
        let found = lookup_extension(&name);
        if found.is_none() {
            log::note(&format!("there is no extension function {name}"));
        }
        address.write(found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(ZeResult::INVALID_ARGUMENT)
    })
}

/// `zeDriverGetDefaultContext` (ze_api.h): a handle, not a result; NULL when there is none.
pub extern "C" fn get_default_context(driver: Handle<Driver>) -> Handle<Context> {
    let mut context = Handle::NULL;
    let _ = call(|| {
        driver.get()?;
        process::allow_descriptor_fetch();
        context = INSTANCE.default_context;
        Ok(())
    });
    context
}

/// `zerGetDefaultContext` (zer_api.h).
pub extern "C" fn runtime_get_default_context() -> Handle<Context> {
    if process::is_forked_child() { Handle::NULL } else { get_default_context(INSTANCE.driver) }
}

/// `zeDriverGetLastErrorDescription` (ze_api.h): errors are told apart by their code, so the text is empty.
pub extern "C" fn get_last_error_description(driver: Handle<Driver>, text: Out<*const c_char>) -> ZeResult {
    call(|| driver.get().and_then(|_| text.write(c"".as_ptr())))
}

/// `zerGetLastErrorDescription` (zer_api.h).
pub extern "C" fn runtime_get_last_error_description(text: Out<*const c_char>) -> ZeResult {
    call(|| text.write(c"".as_ptr()))
}

/// `zerTranslateDeviceHandleToIdentifier` (zer_api.h): the number of a device, all ones for a bad handle.
pub extern "C" fn translate_device_handle_to_identifier(device: Handle<Device>) -> u32 {
    let mut identifier = u32::MAX;
    let _ = call(|| {
        identifier = device.get()?.index;
        Ok(())
    });
    identifier
}

/// `zerTranslateIdentifierToDeviceHandle` (zer_api.h): NULL for a number that no device has.
pub extern "C" fn translate_identifier_to_device_handle(identifier: u32) -> Handle<Device> {
    let mut handle = Handle::NULL;
    let _ = call(|| {
        handle = devices().get(identifier as usize).map_or(Handle::NULL, Handle::of);
        Ok(())
    });
    handle
}

/// The driver behind a handle, checked.
pub(crate) fn check(driver: Handle<Driver>) -> Outcome {
    driver.get().map(drop)
}

fn physical_memory() -> u64 {
    // SAFETY: sysconf takes a number and answers one.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0))
}
