//! The devices, and the entry points about relations between them.
//!
//! A device is a share of host memory with a number. All devices access each other's memory, unless
//! `ZE_SOFT_PEERS=off`. Each may have sub-devices, which are devices with a part of its memory and with engines of
//! their own; the parts of one device always access each other's memory. Its properties are in `properties`.

use std::sync::Arc;

use crate::discovery::driver::{self, Driver};
use crate::ffi;
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{ZeResult, call};
use crate::ffi::{Out, layout::DeviceP2pProperties};
use crate::platform::settings::{self, Settings};
use crate::platform::{budget::Budget, clock};
use crate::shared_memory::own_file::NO_DEVICE;

/// The number of a device, and that of a sub-device in it.
pub(crate) type Numbers = (u32, Option<u32>);

/// The object of a `ze_device_handle_t`.
pub struct Device {
    /// Its number, starting from 0. A sub-device has that of the device that it is a part of.
    pub(crate) index: u32,
    /// The device that it is a part of, and its number there, starting from 0. None for a whole device.
    pub(crate) part: Option<(Arc<Self>, u32)>,
    /// Whether the application sees this sub-device as a root device.
    pub(crate) stands_alone: bool,
    /// Device IP version, packed as `ze_device_ip_version_ext_t` has it.
    pub(crate) ip_version: u32,
    /// The memory that can be allocated on it.
    pub(crate) memory: Arc<Budget>,
}

impl Device {
    /// The device with this number. It has the memory of its sub-devices that the process sees.
    pub(crate) fn new(index: u32, seen: usize, settings: &Settings) -> Self {
        let is_whole = seen == settings.sub_devices as usize;
        let of_parts = settings.memory / u64::from(settings.sub_devices.max(1)) * seen as u64;
        let memory = if is_whole { settings.memory } else { of_parts };
        Self { index, part: None, stands_alone: true, ip_version: settings.ip_version, memory: Budget::new(memory) }
    }

    /// The sub-device with this number. All are of the same size.
    pub(crate) fn part(self: &Arc<Self>, number: u32, stands_alone: bool, settings: &Settings) -> Arc<Self> {
        let memory = self.memory.part(settings.memory / u64::from(settings.sub_devices.max(1)));
        let part = Some((Arc::clone(self), number));
        Arc::new(Self { index: self.index, part, stands_alone, ip_version: self.ip_version, memory })
    }

    /// The device that the application sees this one as a part of, and its number there.
    pub(crate) fn whole(&self) -> Option<&(Arc<Self>, u32)> {
        self.part.as_ref().filter(|_| !self.stands_alone)
    }

    /// Its number, and its number in that device if it is a sub-device.
    pub(crate) fn numbers(&self) -> Numbers {
        (self.index, self.part.as_ref().map(|(_, number)| *number))
    }

    /// Whether it is this device or one of its sub-devices.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.index == other.index && (other.part.is_none() || self.numbers() == other.numbers())
    }

    /// The number of a device in handles of its memory, or `NO_DEVICE` for memory of the host.
    pub(crate) fn number(device: Option<&Arc<Self>>) -> u8 {
        device.and_then(|device| u8::try_from(device.index).ok()).unwrap_or(NO_DEVICE)
    }

    /// The size of its memory, in bytes.
    pub fn memory_size(&self) -> u64 {
        self.memory.limit
    }

    /// Its UUID, the same one in every process, so that processes can agree on a device.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"urscope dev \0\0\0\0";
        let (index, part) = self.numbers();
        let numbers = [part.map_or(0, |number| number as u16 + 1), index as u16];
        for (place, byte) in uuid.iter_mut().skip(12).zip(numbers.map(u16::to_be_bytes).as_flattened()) {
            *place = *byte;
        }
        uuid
    }

    /// Whether it can access the memory of another one.
    pub fn can_access_peer(&self, peer: &Arc<Self>) -> bool {
        self.can_access(Self::number(Some(peer)))
    }

    /// Whether it can access the memory that a handle describes with this number.
    fn can_access(&self, number: u8) -> bool {
        settings::get().peers || number == NO_DEVICE || u32::from(number) == self.index
    }

    /// The reason, in words for the log, why memory of the device with this number cannot be used on `device`.
    pub(crate) fn reach(device: Option<&Arc<Self>>, number: u8) -> Result<(), String> {
        match device {
            Some(device) if !device.can_access(number) => Err(format!(
                "the memory is on device {number}, which is no peer of device {} (ZE_SOFT_PEERS=off)",
                device.index
            )),
            _ => Ok(()),
        }
    }
}

object!(Device);

/// `zeDeviceGet` (ze_api.h).
pub extern "C" fn get(driver: Handle<Driver>, count: Out<u32>, devices: Out<Handle<Device>>) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        ffi::enumerate(count, devices, driver::devices(), |place, device| place.write(Handle::from_object(device)))
    })
}

/// `zeDeviceGetSubDevices` (ze_api.h). A sub-device has none.
pub extern "C" fn get_sub_devices(device: Handle<Device>, count: Out<u32>, devices: Out<Handle<Device>>) -> ZeResult {
    call(|| {
        let parts = driver::sub_devices(&*device.get()?);
        ffi::enumerate(count, devices, parts, |place, part| place.write(Handle::from_object(part)))
    })
}

/// `zeDeviceGetRootDevice` (ze_api.h). NULL for a device that is a part of no other.
pub extern "C" fn get_root_device(device: Handle<Device>, root: Out<Handle<Device>>) -> ZeResult {
    call(|| root.write(device.get()?.whole().map_or(Handle::NULL, |(whole, _)| Handle::from_object(whole))))
}

/// `zeDeviceGetP2PProperties` (ze_api.h). Access and atomics work between peers.
pub extern "C" fn get_p2p_properties(
    device: Handle<Device>,
    peer: Handle<Device>,
    properties: Out<DeviceP2pProperties>,
) -> ZeResult {
    call(|| {
        let reach = device.get()?.can_access_peer(&peer.get()?);
        properties.edit(|out| out.flags = if reach { 0b11 } else { 0 })
    })
}

/// `zeDeviceCanAccessPeer` (ze_api.h). True for a device and itself, and for all unless `ZE_SOFT_PEERS=off`.
pub extern "C" fn can_access_peer(device: Handle<Device>, peer: Handle<Device>, value: Out<u8>) -> ZeResult {
    call(|| value.write(u8::from(device.get()?.can_access_peer(&peer.get()?))))
}

/// `zeDeviceGetStatus` (ze_api.h). A software device is never lost.
pub extern "C" fn get_status(device: Handle<Device>) -> ZeResult {
    call(|| device.get().map(drop))
}

/// `zeDeviceGetGlobalTimestamps` (ze_api.h). Host and device use the same clock, in nanoseconds.
pub extern "C" fn get_global_timestamps(device: Handle<Device>, host: Out<u64>, own: Out<u64>) -> ZeResult {
    call(|| {
        device.get()?;
        let now = clock::now();
        host.write(now)?;
        own.write(now)
    })
}
