//! The functions of the software device that this library calls, and its one driver.
//!
//! Addresses of memory come from C callers, who promise what cuda.h says of them.

use std::{mem, process, sync::OnceLock};

use urscope_device::{ZeResult, ddi::entry, layout};

use crate::result::{Code, Outcome};

/// Any handle of Level Zero.
pub(crate) type Handle = usize;

/// `ze_host_function_callback_t`, which is `CUhostFn`.
pub(crate) type HostFunction = Option<extern "C" fn(usize)>;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "names and arguments are those of the C API")]
        pub(crate) fn $name($($argument: $type),*) -> Outcome {
            // SAFETY: the signature is that of ze_api.h, which the entry point has.
            let function = unsafe {
                mem::transmute::<*const (), extern "C" fn($($type),*) -> ZeResult>(entry::$name as *const ())
            };
            match function($($argument),*) {
                ZeResult::SUCCESS => Ok(()),
                other => Err(other.into()),
            }
        }
    )*};
}

functions! {
    zeInit(flags: u32);
    zeDriverGet(count: &mut u32, drivers: Option<&mut Handle>);
    zeDeviceGet(driver: Handle, count: &mut u32, devices: *mut Handle);
    zeDeviceGetProperties(device: Handle, properties: &mut layout::DeviceProperties);
    zeDeviceGetMemoryProperties(device: Handle, count: &mut u32, properties: &mut layout::DeviceMemoryProperties);
    zeDeviceCanAccessPeer(device: Handle, peer: Handle, possible: &mut u8);
    zeContextCreate(driver: Handle, desc: &layout::ContextDesc, context: &mut Handle);
    zeMemAllocDevice(
        context: Handle, desc: &layout::DeviceMemAllocDesc, size: usize, alignment: usize, device: Handle, memory: &mut usize,
    );
    zeMemAllocHost(context: Handle, desc: &layout::HostMemAllocDesc, size: usize, alignment: usize, memory: &mut usize);
    zeMemAllocShared(
        context: Handle, desc: &layout::DeviceMemAllocDesc, host: &layout::HostMemAllocDesc, size: usize, alignment: usize,
        device: Handle, memory: &mut usize,
    );
    zeMemFree(context: Handle, memory: usize);
    zeMemGetIpcHandle(context: Handle, memory: usize, handle: &mut layout::IpcHandle);
    zeMemPutIpcHandle(context: Handle, handle: layout::IpcHandle);
    zeMemOpenIpcHandle(context: Handle, device: Handle, handle: layout::IpcHandle, flags: u32, memory: &mut usize);
    zeMemCloseIpcHandle(context: Handle, memory: usize);
    zePhysicalMemCreate(context: Handle, device: Handle, desc: &layout::PhysicalMemDesc, memory: &mut Handle);
    zePhysicalMemDestroy(context: Handle, memory: Handle);
    zePhysicalMemGetProperties(context: Handle, memory: Handle, properties: &mut layout::PhysicalMemProperties);
    zeVirtualMemReserve(context: Handle, start: usize, size: usize, address: &mut usize);
    zeVirtualMemFree(context: Handle, address: usize, size: usize);
    zeVirtualMemMap(context: Handle, address: usize, size: usize, memory: Handle, offset: usize, access: u32);
    zeVirtualMemUnmap(context: Handle, address: usize, size: usize);
    zeVirtualMemSetAccessAttribute(context: Handle, address: usize, size: usize, access: u32);
    zeCommandListCreateImmediate(context: Handle, device: Handle, desc: &layout::CommandQueueDesc, list: &mut Handle);
    zeCommandListDestroy(list: Handle);
    zeCommandListHostSynchronize(list: Handle, timeout: u64);
    zeCommandListAppendMemoryCopy(
        list: Handle, to: usize, from: usize, size: usize, signal: Handle, count: u32, waits: Option<&Handle>,
    );
    zeCommandListAppendMemoryCopyRegion(
        list: Handle, to: usize, to_region: &layout::CopyRegion, to_pitch: u32, to_slice: u32, from: usize,
        from_region: &layout::CopyRegion, from_pitch: u32, from_slice: u32, signal: Handle, count: u32,
        waits: Option<&Handle>,
    );
    zeCommandListAppendMemoryFill(
        list: Handle, to: usize, pattern: &u32, pattern_size: usize, size: usize, signal: Handle, count: u32,
        waits: Option<&Handle>,
    );
    zeCommandListAppendHostFunction(
        list: Handle, function: HostFunction, data: usize, extensions: usize, signal: Handle, count: u32,
        waits: Option<&Handle>,
    );
    zeCommandListAppendSignalEvent(list: Handle, event: Handle);
    zeCommandListAppendWaitOnEvents(list: Handle, count: u32, events: &Handle);
    zeEventCounterBasedCreate(context: Handle, device: Handle, desc: &layout::EventCounterBasedDesc, event: &mut Handle);
    zeEventCounterBasedGetIpcHandle(event: Handle, handle: &mut layout::IpcHandle);
    zeEventCounterBasedOpenIpcHandle(context: Handle, handle: layout::IpcHandle, event: &mut Handle);
    zeEventCounterBasedCloseIpcHandle(event: Handle);
    zeEventDestroy(event: Handle);
    zeEventQueryStatus(event: Handle);
    zeEventHostSynchronize(event: Handle, timeout: u64);
    zeEventQueryKernelTimestamp(event: Handle, result: &mut layout::KernelTimestampResult);
}

/// The software device, as this process sees it.
pub(crate) struct Driver {
    pub context: Handle,
    /// By ordinal.
    pub devices: Vec<Handle>,
    /// The process that initialised it. As with the driver, it is not initialised in a forked child.
    process: u32,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// `NOT_INITIALIZED` before `cuInit`, and in a forked child of a process that called it.
pub(crate) fn driver() -> Outcome<&'static Driver> {
    DRIVER.get().filter(|driver| driver.process == process::id()).ok_or(Code::NOT_INITIALIZED)
}

/// `NO_DEVICE` if the process sees none.
pub(crate) fn initialise() -> Outcome {
    if DRIVER.get().is_some() {
        return driver().map(drop);
    }
    zeInit(0).map_err(|_| Code::NO_DEVICE)?;
    let (mut found, mut count, mut context) = (0, 1, 0);
    zeDriverGet(&mut count, Some(&mut found))?;
    let mut count = 0;
    zeDeviceGet(found, &mut count, std::ptr::null_mut())?;
    let mut devices = vec![0; count as usize];
    zeDeviceGet(found, &mut count, devices.as_mut_ptr())?;
    zeContextCreate(found, &zeroed(), &mut context)?;
    // If another thread was faster, its driver is the same device.
    let _ = DRIVER.set(Driver { context, devices, process: process::id() });
    Ok(())
}

/// A structure of ze_api.h whose members are all 0.
pub(crate) fn zeroed<T: layout::Extensible>() -> T {
    // SAFETY: the structures consist of numbers, pointers and arrays of them, for which 0 is a value.
    unsafe { mem::zeroed() }
}
