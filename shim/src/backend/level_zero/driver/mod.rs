//! The Level Zero driver of this process: the functions of `libze_loader.so.1`, by name.
//!
//! The adapter uses the same library, so the handles are the same. A call of a missing function returns
//! UNSUPPORTED_FEATURE. The driver is never initialized or torn down here.

use std::{ffi::c_void, ptr::null_mut, sync::OnceLock};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::api::ResultCode;

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
    pub(crate) fn not_null(self) -> Result<Self, ResultCode> {
        if self == Self::NULL { Err(ResultCode::UNKNOWN) } else { Ok(self) }
    }
}

macro_rules! driver {
    ($(fn $name:ident($($param:ident: $type:ty),*) = $symbol:literal;)*) => {
        /// The functions that the loader has.
        pub(crate) struct Driver {
            $($name: Option<unsafe extern "C" fn($($type),*) -> ZeResult>,)*
        }

        impl Driver {
            fn from_library(library: Option<&Library>) -> Self {
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
                unsafe fn $name(&self, $($param: $type),*) -> Result<(), ResultCode> {
                    // SAFETY: the caller's promise.
                    self.$name.map_or(Err(ResultCode::UNSUPPORTED_FEATURE), |function| unsafe { function($($param),*) }.ur())
                }
            )*
        }
    };
}

driver! {
    fn address_range(context: ZeHandle, pointer: *const c_void, base: *mut *mut c_void, size: *mut usize) = c"zeMemGetAddressRange";
    fn properties(context: ZeHandle, pointer: *const c_void, properties: *mut AllocationProperties, device: *mut ZeHandle) = c"zeMemGetAllocProperties";
    fn get_mem(context: ZeHandle, pointer: *const c_void, handle: *mut IpcHandle) = c"zeMemGetIpcHandle";
    fn put_mem(context: ZeHandle, handle: IpcHandle) = c"zeMemPutIpcHandle";
    fn open_mem(context: ZeHandle, device: ZeHandle, handle: IpcHandle, flags: u32, pointer: *mut *mut c_void) = c"zeMemOpenIpcHandle";
    fn close_mem(context: ZeHandle, pointer: *const c_void) = c"zeMemCloseIpcHandle";
    fn create_event(context: ZeHandle, device: ZeHandle, desc: *const EventDesc, made: *mut ZeHandle) = c"zeEventCounterBasedCreate";
    fn get_event(event: ZeHandle, handle: *mut IpcHandle) = c"zeEventCounterBasedGetIpcHandle";
    fn import_event(context: ZeHandle, handle: IpcHandle, event: *mut ZeHandle) = c"zeEventCounterBasedOpenIpcHandle";
    fn end_import(event: ZeHandle) = c"zeEventCounterBasedCloseIpcHandle";
    fn query_event(event: ZeHandle) = c"zeEventQueryStatus";
    fn destroy_event(event: ZeHandle) = c"zeEventDestroy";
    fn create_list(context: ZeHandle, device: ZeHandle, desc: *const QueueDesc, made: *mut ZeHandle) = c"zeCommandListCreateImmediate";
    fn append_wait(list: ZeHandle, count: u32, events: *const ZeHandle) = c"zeCommandListAppendWaitOnEvents";
    fn append_signal(list: ZeHandle, event: ZeHandle) = c"zeCommandListAppendSignalEvent";
    fn finish_list(list: ZeHandle, timeout: u64) = c"zeCommandListHostSynchronize";
    fn destroy_list(list: ZeHandle) = c"zeCommandListDestroy";
    fn drivers(count: *mut u32, drivers: *mut ZeHandle) = c"zeDriverGet";
    fn devices(driver: ZeHandle, count: *mut u32, devices: *mut ZeHandle) = c"zeDeviceGet";
    fn create_context(driver: ZeHandle, desc: *const ContextDesc, made: *mut ZeHandle) = c"zeContextCreate";
    fn destroy_context(context: ZeHandle) = c"zeContextDestroy";
    fn create_physical(context: ZeHandle, device: ZeHandle, desc: *const PhysicalMemDesc, made: *mut ZeHandle) = c"zePhysicalMemCreate";
    fn physical_properties(context: ZeHandle, physical: ZeHandle, properties: *mut PhysicalMemProperties) = c"zePhysicalMemGetProperties";
    fn destroy_physical(context: ZeHandle, physical: ZeHandle) = c"zePhysicalMemDestroy";
    fn map_physical(context: ZeHandle, at: *const c_void, size: usize, physical: ZeHandle, offset: usize, access: u32) = c"zeVirtualMemMap";
    fn page_size(context: ZeHandle, device: ZeHandle, size: usize, page: *mut usize) = c"zeVirtualMemQueryPageSize";
}

/// The driver of this process.
pub(crate) fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: with RTLD_NOLOAD nothing is loaded, so no code of a library runs.
        let loaded = unsafe { Library::open(Some(LOADER), libc::RTLD_NOLOAD | RTLD_LAZY) };
        // SAFETY: the loader's own start-up code runs, as for any program that links it.
        let library = loaded.or_else(|_| unsafe { Library::open(Some(LOADER), RTLD_LAZY) }).ok();
        let driver = Driver::from_library(library.as_ref());
        // Its functions are called until the process ends.
        std::mem::forget(library);
        driver
    })
}
