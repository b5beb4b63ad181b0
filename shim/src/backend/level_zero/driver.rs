//! The Level Zero driver, as this process reaches it: the functions of its `libze_loader.so.1`, by name.
//!
//! The adapter loaded that library and took its own functions from it, so the handles of both are the same. Each function
//! may be missing: then a call of it answers UNSUPPORTED_FEATURE. Must never be initialised or torn down by us.

use std::{ffi::c_void, ptr::null_mut, sync::OnceLock};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::api::UrResult;

use super::{result::ZeResult, seal::NATIVE_SIZE};

const LOADER: &str = "libze_loader.so.1";

/// A handle of the driver's: `ze_context_handle_t`, `ze_device_handle_t` and so on.
pub(crate) type ZeHandle = *mut c_void;

/// `ze_ipc_mem_handle_t`, and of the same shape `ze_ipc_event_counter_based_handle_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct IpcHandle(pub(crate) [u8; NATIVE_SIZE]);

/// `ze_memory_allocation_properties_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AllocationProperties {
    stype: u32,
    next: *mut c_void,
    kind: u32,
    id: u64,
    page_size: u64,
}

macro_rules! driver {
    ($($(#[doc = $doc:literal])* fn $name:ident($($param:ident: $type:ty),*) = $symbol:literal;)*) => {
        /// The functions that there are.
        pub(crate) struct Driver {
            $($name: Option<extern "C" fn($($type),*) -> ZeResult>,)*
        }

        impl Driver {
            fn of(library: Option<&Library>) -> Self {
                $(
                    let $name = library.and_then(|library| {
                        // SAFETY: what a Level Zero loader exports under this name has this signature (`ze_api.h`).
                        unsafe { library.get::<extern "C" fn($($type),*) -> ZeResult>($symbol) }.ok().map(|found| *found)
                    });
                )*
                Self { $($name,)* }
            }

            $(
                $(#[doc = $doc])*
                #[allow(clippy::too_many_arguments, reason = "as many as the C function has")]
                fn $name(&self, $($param: $type),*) -> Result<(), UrResult> {
                    self.$name.map_or(Err(UrResult::UNSUPPORTED_FEATURE), |function| function($($param),*).ur())
                }
            )*
        }
    };
}

driver! {
    /// The allocation that an address lies in.
    fn address_range(context: ZeHandle, pointer: *const c_void, base: *mut *mut c_void, size: *mut usize) = b"zeMemGetAddressRange\0";
    /// What the driver knows of an allocation.
    fn properties(context: ZeHandle, pointer: *const c_void, properties: *mut AllocationProperties, device: *mut ZeHandle) = b"zeMemGetAllocProperties\0";
    /// A handle for an allocation.
    fn get_mem(context: ZeHandle, pointer: *const c_void, handle: *mut IpcHandle) = b"zeMemGetIpcHandle\0";
    /// Its end.
    fn put_mem(context: ZeHandle, handle: IpcHandle) = b"zeMemPutIpcHandle\0";
    /// A mapping of what a handle is for.
    fn open_mem(context: ZeHandle, device: ZeHandle, handle: IpcHandle, flags: u32, pointer: *mut *mut c_void) = b"zeMemOpenIpcHandle\0";
    /// Its end.
    fn close_mem(context: ZeHandle, pointer: *const c_void) = b"zeMemCloseIpcHandle\0";
}

/// An allocation of the driver's, told from a later one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    /// Where it begins.
    pub(crate) base: usize,
    /// Its length in bytes.
    pub(crate) size: usize,
    /// The driver's number of it, or 0 where the driver does not say.
    pub(crate) id: u64,
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

impl Driver {
    /// Whether memory can be shared at all.
    pub(crate) fn shares_memory(&self) -> bool {
        self.get_mem.is_some() && self.open_mem.is_some() && self.address_range.is_some()
    }

    /// The allocation that `pointer` lies in; an error if it lies in none.
    pub(crate) fn block(&self, context: ZeHandle, pointer: usize) -> Result<Block, UrResult> {
        let (mut base, mut size, mut device) = (null_mut(), 0, null_mut());
        let pointer = std::ptr::with_exposed_provenance(pointer);
        self.address_range(context, pointer, &raw mut base, &raw mut size)?;
        let mut properties = AllocationProperties { stype: 0x17, next: null_mut(), kind: 0, id: 0, page_size: 0 };
        let known = self.properties(context, pointer, &raw mut properties, &raw mut device);
        let id = known.map_or(0, |()| properties.id);
        Ok(Block { base: base.expose_provenance(), size, id })
    }

    /// `zeMemGetIpcHandle`
    pub(crate) fn export(&self, context: ZeHandle, base: usize) -> Result<IpcHandle, UrResult> {
        let mut handle = IpcHandle([0; NATIVE_SIZE]);
        self.get_mem(context, std::ptr::with_exposed_provenance(base), &raw mut handle)?;
        Ok(handle)
    }

    /// `zeMemPutIpcHandle`. A driver without it ends the handle when the memory is freed.
    pub(crate) fn end_export(&self, context: ZeHandle, handle: IpcHandle) {
        let _ = self.put_mem(context, handle);
    }

    /// `zeMemOpenIpcHandle`
    pub(crate) fn open(&self, context: ZeHandle, device: ZeHandle, handle: IpcHandle) -> Result<usize, UrResult> {
        let mut base = null_mut();
        self.open_mem(context, device, handle, 0, &raw mut base)?;
        if base == null_mut() { Err(super::result::UNKNOWN) } else { Ok(base.expose_provenance()) }
    }

    /// `zeMemCloseIpcHandle`
    pub(crate) fn close(&self, context: ZeHandle, base: usize) -> Result<(), UrResult> {
        self.close_mem(context, std::ptr::with_exposed_provenance(base))
    }
}
