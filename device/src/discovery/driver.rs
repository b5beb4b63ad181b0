//! The driver, the objects that exist once in a process, and the entry points about them.
//!
//! The first initialisation creates the instance, which then lives as long as the process. Must never list an extension
//! that is not implemented.

use std::sync::{Arc, LazyLock};
use std::{collections::BTreeMap, ffi::c_char};

use crate::discovery::device::{Device, Numbers};
use crate::discovery::{context::Context, fabric::FabricVertex, selection::Selection};
use crate::ffi;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{
    API_VERSION, DriverExtensionProperties, DriverIpcProperties, DriverProperties, InitDriverTypeDesc,
};
use crate::ffi::result::{Outcome, ZeResult, call, getters, properties};
use crate::ffi::{In, Out};
use crate::platform::settings::{self, Hierarchy};
use crate::platform::{budget::Budget, host, log, process};

/// The build number is in the low 16 bits. The Unified Runtime offers event IPC from build 38646 on.
const DRIVER_VERSION: u32 = (1 << 24) + (17 << 16) + 40_000;
/// `ZE_IPC_PROPERTY_FLAG_MEMORY` and `ZE_IPC_PROPERTY_FLAG_EVENT_POOL`.
const SHARED: u32 = 0b11;
/// The extensions of ze_api.h that are implemented and that have a name, and their versions. The
/// adapters look for some.
const EXTENSIONS: [(&str, u32); 14] = [
    ("ZE_experimental_fabric", VERSION_1_0),
    ("ZE_experimental_global_offset", VERSION_1_0),
    ("ZE_experimental_immediate_command_list_append", VERSION_1_0),
    ("ZE_experimental_module_program", VERSION_1_0),
    ("ZE_experimental_mutable_command_list", VERSION_1_1),
    ("ZE_experimental_relaxed_allocation_limits", VERSION_1_0),
    ("ZE_extension_device_ip_version", VERSION_1_0),
    ("ZE_extension_eu_count", VERSION_1_0),
    ("ZE_extension_event_query_kernel_timestamps", VERSION_1_0),
    ("ZE_extension_float_atomics", VERSION_1_0),
    ("ZE_extension_kernel_max_group_size_properties", VERSION_1_0),
    ("ZE_extension_pci_properties", VERSION_1_0),
    ("ZE_extension_record_replay_graph", VERSION_1_0),
    ("ZE_extension_virtual_mem_readonly_properties", VERSION_1_0),
];
/// `ZE_MAKE_VERSION(1, 0)`.
const VERSION_1_0: u32 = 1 << 16;
/// `ZE_MAKE_VERSION(1, 1)`.
const VERSION_1_1: u32 = (1 << 16) + 1;
/// `ZE_INIT_FLAG_GPU_ONLY` and `ZE_INIT_DRIVER_TYPE_FLAG_GPU`.
const GPU: u32 = 1;

/// The object of a `ze_driver_handle_t`.
pub struct Driver {
    // A zero-sized type would have no address of its own, and so no handle.
    _identity: u8,
}

object!(Driver);

/// Driver and devices of this process.
struct Instance {
    driver: Handle<Driver>,
    /// The devices that `zeDeviceGet` returns.
    devices: Vec<Arc<Device>>,
    /// The sub-devices of each whole device, by its number.
    sub_devices: BTreeMap<u32, Vec<Arc<Device>>>,
    /// All devices that have a handle, those that `zeDeviceGet` returns first.
    all: Vec<Arc<Device>>,
    fabric_vertices: BTreeMap<Numbers, Handle<FabricVertex>>,
    host_memory: Arc<Budget>,
    default_context: Handle<Context>,
}

static INSTANCE: LazyLock<Instance> = LazyLock::new(|| {
    process::watch_forks();
    let settings = settings::get();
    let selection = Selection::from_settings(settings);
    for (device, part) in &selection.unused {
        let part = part.map(|part| format!(".{part}")).unwrap_or_default();
        log::warn(&format!("ZE_AFFINITY_MASK: there is no device {device}{part}"));
    }
    let mut wholes = Vec::new();
    let mut sub_devices = BTreeMap::new();
    for (index, parts) in selection.wholes {
        let whole = Arc::new(Device::new(index, parts.len(), settings));
        let is_listed = |number| selection.listed.contains(&(index, Some(number)));
        let stands_alone = |number| settings.hierarchy != Hierarchy::Combined && is_listed(number);
        let part = |number| whole.part(number, stands_alone(number), settings);
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        wholes.push(whole);
        sub_devices.insert(index, parts);
    }
    let of_numbers = |numbers: &Numbers| {
        let mut all = wholes.iter().chain(sub_devices.values().flatten());
        all.find(|device| device.numbers() == *numbers).map(Arc::clone)
    };
    let devices: Vec<_> = selection.listed.iter().filter_map(of_numbers).collect();
    // A sub-device that is a root device itself hides the device that it is a part of.
    let hidden = |whole: &&Arc<Device>| {
        sub_devices.get(&whole.index).is_some_and(|parts| parts.iter().any(|part: &Arc<Device>| part.stands_alone))
    };
    let is_listed = |device: &&Arc<Device>| devices.iter().any(|listed| Arc::ptr_eq(listed, device));
    let others = wholes.iter().filter(|whole| !hidden(whole)).chain(sub_devices.values().flatten());
    let all: Vec<_> = devices.iter().chain(others.filter(|device| !is_listed(device))).map(Arc::clone).collect();
    for device in &all {
        Handle::register(Arc::clone(device));
    }
    let vertex = |device: &Arc<Device>| {
        (device.numbers(), Handle::register(Arc::new(FabricVertex { device: Arc::clone(device) })))
    };
    Instance {
        fabric_vertices: all.iter().map(vertex).collect(),
        driver: Handle::register(Arc::new(Driver { _identity: 0 })),
        devices,
        sub_devices,
        all,
        host_memory: Budget::new(host::physical_memory()),
        default_context: Handle::register(Arc::new(Context::new())),
    }
});

/// The devices that `zeDeviceGet` returns, ordered by their numbers.
pub fn devices() -> &'static [Arc<Device>] {
    &INSTANCE.devices
}

/// The sub-devices of a device that the process sees, ordered by their numbers. A sub-device has none.
pub(crate) fn sub_devices(device: &Device) -> &'static [Arc<Device>] {
    let of_whole = INSTANCE.sub_devices.get(&device.index).filter(|_| device.part.is_none());
    of_whole.map_or(&[], Vec::as_slice)
}

pub(crate) fn vertex_of(device: &Device) -> Handle<FabricVertex> {
    INSTANCE.fabric_vertices.get(&device.numbers()).copied().unwrap_or(Handle::NULL)
}

/// The budget for an allocation on `device`, or on the host for `None`, and the error when it is exhausted.
pub(crate) fn budget(device: Option<&Arc<Device>>) -> (&Arc<Budget>, ZeResult) {
    match device {
        Some(device) => (&device.memory, ZeResult::OUT_OF_DEVICE_MEMORY),
        None => (&INSTANCE.host_memory, ZeResult::OUT_OF_HOST_MEMORY),
    }
}

/// `zeInit` (ze_api.h).
pub extern "C" fn init(flags: u32) -> ZeResult {
    call(|| {
        if flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        // The caller wants an NPU only, and there is none; or the mask selects no device.
        let none = flags != 0 && flags & GPU == 0 || INSTANCE.devices.is_empty();
        if none { Err(ZeResult::UNINITIALIZED) } else { Ok(()) }
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
        let fitting = if flags & GPU == 0 || INSTANCE.devices.is_empty() {
            &[][..]
        } else {
            std::slice::from_ref(&INSTANCE.driver)
        };
        ffi::enumerate(count, drivers, fitting, |place, driver| place.write(*driver))
    })
}

/// `zeDriverGet` (ze_api.h).
pub extern "C" fn get(count: Out<u32>, drivers: Out<Handle<Driver>>) -> ZeResult {
    call(|| ffi::enumerate(count, drivers, &[INSTANCE.driver], |place, driver| place.write(*driver)))
}

getters! {
    zeDriverGetApiVersion: get_api_version(_driver: Driver) -> u32 { API_VERSION }
    /// The text is empty: the result code is the whole description.
    zeDriverGetLastErrorDescription: get_last_error_description(_driver: Driver) -> *const c_char { c"".as_ptr() }
}

properties! {
    zeDriverGetProperties: get_properties(_driver: Driver, out: DriverProperties) {
        out.uuid = *b"urscope ze soft\0";
        out.driver_version = DRIVER_VERSION;
    }

    zeDriverGetIpcProperties: get_ipc_properties(_driver: Driver, out: DriverIpcProperties) {
        out.flags = SHARED;
    }
}

/// `zeDriverGetExtensionProperties` (ze_api.h).
pub extern "C" fn get_extension_properties(
    driver: Handle<Driver>,
    count: Out<u32>,
    properties: Out<DriverExtensionProperties>,
) -> ZeResult {
    call(|| {
        driver.get()?;
        ffi::enumerate(count, properties, &EXTENSIONS, |place, (name, version)| {
            place.write(DriverExtensionProperties { name: ffi::text(name), version: *version })
        })
    })
}

/// `zeDriverGetDefaultContext` (ze_api.h). Returns the handle itself; NULL for an invalid driver.
pub extern "C" fn get_default_context(driver: Handle<Driver>) -> Handle<Context> {
    returned(Handle::NULL, || {
        driver.get()?;
        process::allow_descriptor_fetch();
        Ok(INSTANCE.default_context)
    })
}

/// `zerGetDefaultContext` (zer_api.h). Returns the handle itself.
pub extern "C" fn runtime_get_default_context() -> Handle<Context> {
    if process::is_forked_child() { Handle::NULL } else { get_default_context(INSTANCE.driver) }
}

/// `zerGetLastErrorDescription` (zer_api.h).
pub extern "C" fn runtime_get_last_error_description(text: Out<*const c_char>) -> ZeResult {
    call(|| text.write(c"".as_ptr()))
}

/// `zerTranslateDeviceHandleToIdentifier` (zer_api.h). Returns the number of a device, or one above
/// them for a sub-device; `UINT32_MAX` for an invalid handle.
pub extern "C" fn translate_device_handle_to_identifier(device: Handle<Device>) -> u32 {
    returned(u32::MAX, || {
        let device = device.get()?;
        let place = INSTANCE.all.iter().position(|other| Arc::ptr_eq(other, &device));
        Ok(place.map_or(u32::MAX, |place| place as u32))
    })
}

/// `zerTranslateIdentifierToDeviceHandle` (zer_api.h). Returns NULL for a number that no device has.
pub extern "C" fn translate_identifier_to_device_handle(identifier: u32) -> Handle<Device> {
    returned(Handle::NULL, || {
        let unknown = || ZeResult::INVALID_ARGUMENT.because(|| format!("no device has the number {identifier}"));
        INSTANCE.all.get(identifier as usize).map(Handle::from_object).ok_or_else(unknown)
    })
}

/// `INVALID_NULL_HANDLE` or `INVALID_ARGUMENT` unless this is the handle of the driver.
pub(crate) fn check(driver: Handle<Driver>) -> Outcome {
    driver.get().map(drop)
}

/// What the body of an entry point returns, or `otherwise` with an error.
fn returned<T>(otherwise: T, body: impl FnOnce() -> Outcome<T>) -> T {
    let mut value = otherwise;
    let _ = call(|| body().map(|found| value = found));
    value
}
