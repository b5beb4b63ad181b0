//! The Level Zero driver of this process: the functions of `libze_loader.so.1`, by name.
//!
//! The adapter uses the same library, so the handles are the same. A call of a missing function returns
//! UNSUPPORTED_FEATURE. The driver is never initialized or torn down here.

use std::{ffi::c_void, ptr::null_mut, sync::OnceLock};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::api::UrResult;

use self::structs::{AllocationProperties, ContextDesc, EventDesc, PhysicalMemDesc, PhysicalMemProperties, QueueDesc};
use super::result::ZeResult;

mod context;
mod event;
mod memory;
mod physical;
mod structs;

pub(crate) use self::memory::{Block, MappedBase};
pub(crate) use self::structs::IpcHandle;

const LOADER: &str = "libze_loader.so.1";

/// A handle of the driver's: `ze_context_handle_t`, `ze_device_handle_t` and so on. Only the driver and the adapter
/// make them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ZeHandle(*mut c_void);

// SAFETY: a driver's handles may be used by any thread (`ze_api.h`: the functions that are called here are
// thread-safe).
unsafe impl Send for ZeHandle {}
// SAFETY: as above.
unsafe impl Sync for ZeHandle {}

impl ZeHandle {
    /// No handle: the value of a variable before a driver or an adapter writes a handle.
    pub(crate) const NULL: Self = Self(null_mut());

    /// The handle with an address.
    ///
    /// # Safety
    ///
    /// It is a handle of the driver's, or null.
    pub(crate) const unsafe fn new(handle: *mut c_void) -> Self {
        Self(handle)
    }

    /// The address, which identifies the handle among those of its kind.
    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }

    /// The handle; an error if the driver reported success and wrote none.
    pub(crate) fn not_null(self) -> Result<Self, UrResult> {
        if self == Self::NULL { Err(UrResult::UNKNOWN) } else { Ok(self) }
    }
}

macro_rules! driver {
    ($(fn $name:ident($($param:ident: $type:ty),*) = $symbol:literal;)*) => {
        /// The functions that the loader has.
        pub(crate) struct Driver {
            $($name: Option<unsafe extern "C" fn($($type),*) -> ZeResult>,)*
        }

        impl Driver {
            fn of(library: Option<&Library>) -> Self {
                $(
                    let $name = library.and_then(|library| {
                        // SAFETY: what a Level Zero loader exports under this name has this signature (`ze_api.h`).
                        unsafe { library.get::<unsafe extern "C" fn($($type),*) -> ZeResult>($symbol) }.ok().map(|found| *found)
                    });
                )*
                Self { $($name,)* }
            }

            $(
                /// # Safety
                ///
                /// As for the C function: pointers are those of live variables of the right size, and handles live.
                #[allow(clippy::too_many_arguments, reason = "as many as the C function has")]
                unsafe fn $name(&self, $($param: $type),*) -> Result<(), UrResult> {
                    // SAFETY: the caller's promise.
                    self.$name.map_or(Err(UrResult::UNSUPPORTED_FEATURE), |function| unsafe { function($($param),*) }.ur())
                }
            )*
        }
    };
}

driver! {
    fn address_range(context: ZeHandle, pointer: *const c_void, base: *mut *mut c_void, size: *mut usize) = b"zeMemGetAddressRange\0";
    fn properties(context: ZeHandle, pointer: *const c_void, properties: *mut AllocationProperties, device: *mut ZeHandle) = b"zeMemGetAllocProperties\0";
    fn get_mem(context: ZeHandle, pointer: *const c_void, handle: *mut IpcHandle) = b"zeMemGetIpcHandle\0";
    fn put_mem(context: ZeHandle, handle: IpcHandle) = b"zeMemPutIpcHandle\0";
    fn open_mem(context: ZeHandle, device: ZeHandle, handle: IpcHandle, flags: u32, pointer: *mut *mut c_void) = b"zeMemOpenIpcHandle\0";
    fn close_mem(context: ZeHandle, pointer: *const c_void) = b"zeMemCloseIpcHandle\0";
    fn create_event(context: ZeHandle, device: ZeHandle, desc: *const EventDesc, made: *mut ZeHandle) = b"zeEventCounterBasedCreate\0";
    fn get_event(event: ZeHandle, handle: *mut IpcHandle) = b"zeEventCounterBasedGetIpcHandle\0";
    fn import_event(context: ZeHandle, handle: IpcHandle, event: *mut ZeHandle) = b"zeEventCounterBasedOpenIpcHandle\0";
    fn end_import(event: ZeHandle) = b"zeEventCounterBasedCloseIpcHandle\0";
    fn query_event(event: ZeHandle) = b"zeEventQueryStatus\0";
    fn destroy_event(event: ZeHandle) = b"zeEventDestroy\0";
    fn create_list(context: ZeHandle, device: ZeHandle, desc: *const QueueDesc, made: *mut ZeHandle) = b"zeCommandListCreateImmediate\0";
    fn append_wait(list: ZeHandle, count: u32, events: *const ZeHandle) = b"zeCommandListAppendWaitOnEvents\0";
    fn append_signal(list: ZeHandle, event: ZeHandle) = b"zeCommandListAppendSignalEvent\0";
    fn finish_list(list: ZeHandle, timeout: u64) = b"zeCommandListHostSynchronize\0";
    fn destroy_list(list: ZeHandle) = b"zeCommandListDestroy\0";
    fn drivers(count: *mut u32, drivers: *mut ZeHandle) = b"zeDriverGet\0";
    fn devices(driver: ZeHandle, count: *mut u32, devices: *mut ZeHandle) = b"zeDeviceGet\0";
    fn create_context(driver: ZeHandle, desc: *const ContextDesc, made: *mut ZeHandle) = b"zeContextCreate\0";
    fn destroy_context(context: ZeHandle) = b"zeContextDestroy\0";
    fn create_physical(context: ZeHandle, device: ZeHandle, desc: *const PhysicalMemDesc, made: *mut ZeHandle) = b"zePhysicalMemCreate\0";
    fn physical_properties(context: ZeHandle, physical: ZeHandle, properties: *mut PhysicalMemProperties) = b"zePhysicalMemGetProperties\0";
    fn destroy_physical(context: ZeHandle, physical: ZeHandle) = b"zePhysicalMemDestroy\0";
    fn map_physical(context: ZeHandle, at: *const c_void, size: usize, physical: ZeHandle, offset: usize, access: u32) = b"zeVirtualMemMap\0";
    fn page_size(context: ZeHandle, device: ZeHandle, size: usize, page: *mut usize) = b"zeVirtualMemQueryPageSize\0";
}

/// The driver of this process.
pub(crate) fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no code of a library runs.
        let loaded = unsafe { Library::open(Some(LOADER), libc::RTLD_NOLOAD | RTLD_LAZY) };
        // SAFETY: the loader's own start-up code runs, as for any program that links it.
        let library = loaded.or_else(|_| unsafe { Library::open(Some(LOADER), RTLD_LAZY) }).ok();
        let driver = Driver::of(library.as_ref());
        // Its functions are called until the process ends.
        std::mem::forget(library);
        driver
    })
}
