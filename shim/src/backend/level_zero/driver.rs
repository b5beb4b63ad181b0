//! The Level Zero driver, as this process reaches it: the functions of its `libze_loader.so.1`, by name.
//!
//! The adapter loaded that library and took its own functions from it, so the handles of both are the same. Each function
//! may be missing: then a call of it answers UNSUPPORTED_FEATURE. Must never be initialised or torn down by us.

use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::OnceLock,
};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::api::UrResult;

use super::{handle_data::NATIVE_SIZE, result::ZeResult};

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

/// `ze_physical_mem_desc_t`.
#[repr(C)]
pub(crate) struct PhysicalMemDesc {
    stype: u32,
    next: *const c_void,
    flags: u32,
    size: usize,
}

/// `ze_physical_mem_properties_t`.
#[repr(C)]
pub(crate) struct PhysicalMemProperties {
    stype: u32,
    next: *mut c_void,
    id: u64,
    size: u64,
}

/// `ze_event_counter_based_desc_t`.
#[repr(C)]
pub(crate) struct EventDesc {
    stype: u32,
    next: *const c_void,
    flags: u32,
    signal: u32,
    wait: u32,
}

/// `ze_command_queue_desc_t`.
#[repr(C)]
pub(crate) struct QueueDesc {
    stype: u32,
    next: *const c_void,
    ordinal: u32,
    index: u32,
    flags: u32,
    mode: u32,
    priority: u32,
}

/// `ze_context_desc_t`.
#[repr(C)]
pub(crate) struct ContextDesc {
    stype: u32,
    next: *const c_void,
    flags: u32,
}

/// `ze_external_memory_export_desc_t`, which ends before the descriptor, `ze_external_memory_import_fd_t` and
/// `ze_external_memory_export_fd_t`.
#[repr(C)]
struct ExternalMemory {
    stype: u32,
    next: *const c_void,
    flags: u32,
    descriptor: i32,
}

impl ExternalMemory {
    const EXPORT: u32 = 0x18;
    const IMPORT: u32 = 0x19;
    const EXPORTED: u32 = 0x1a;

    fn new(stype: u32, descriptor: i32) -> Self {
        const OPAQUE_FD: u32 = 1;
        Self { stype, next: null(), flags: OPAQUE_FD, descriptor }
    }
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
    /// An event by itself.
    fn create_event(context: ZeHandle, device: ZeHandle, desc: *const EventDesc, made: *mut ZeHandle) = b"zeEventCounterBasedCreate\0";
    /// A handle for it.
    fn get_event(event: ZeHandle, handle: *mut IpcHandle) = b"zeEventCounterBasedGetIpcHandle\0";
    /// An event that a handle is for.
    fn import_event(context: ZeHandle, handle: IpcHandle, event: *mut ZeHandle) = b"zeEventCounterBasedOpenIpcHandle\0";
    /// Its end.
    fn end_import(event: ZeHandle) = b"zeEventCounterBasedCloseIpcHandle\0";
    /// Whether what was last to signal it has done so.
    fn query_event(event: ZeHandle) = b"zeEventQueryStatus\0";
    /// The end of an event that was made here.
    fn destroy_event(event: ZeHandle) = b"zeEventDestroy\0";
    /// A list that works off what is appended to it, in order.
    fn create_list(context: ZeHandle, device: ZeHandle, desc: *const QueueDesc, made: *mut ZeHandle) = b"zeCommandListCreateImmediate\0";
    /// Its wait for events.
    fn append_wait(list: ZeHandle, count: u32, events: *const ZeHandle) = b"zeCommandListAppendWaitOnEvents\0";
    /// Its signal of an event.
    fn append_signal(list: ZeHandle, event: ZeHandle) = b"zeCommandListAppendSignalEvent\0";
    /// A wait for all that was appended to it.
    fn finish_list(list: ZeHandle, timeout: u64) = b"zeCommandListHostSynchronize\0";
    /// Its end.
    fn destroy_list(list: ZeHandle) = b"zeCommandListDestroy\0";
    /// The drivers that there are.
    fn drivers(count: *mut u32, drivers: *mut ZeHandle) = b"zeDriverGet\0";
    /// The devices of a driver.
    fn devices(driver: ZeHandle, count: *mut u32, devices: *mut ZeHandle) = b"zeDeviceGet\0";
    /// A context.
    fn create_context(driver: ZeHandle, desc: *const ContextDesc, made: *mut ZeHandle) = b"zeContextCreate\0";
    /// Its end.
    fn destroy_context(context: ZeHandle) = b"zeContextDestroy\0";
    /// Physical memory, new or imported.
    fn create_physical(context: ZeHandle, device: ZeHandle, desc: *const PhysicalMemDesc, made: *mut ZeHandle) = b"zePhysicalMemCreate\0";
    /// What the driver knows of physical memory, and a descriptor of it.
    fn physical_properties(context: ZeHandle, physical: ZeHandle, properties: *mut PhysicalMemProperties) = b"zePhysicalMemGetProperties\0";
    /// Its end.
    fn destroy_physical(context: ZeHandle, physical: ZeHandle) = b"zePhysicalMemDestroy\0";
    /// Its place at an address.
    fn map_physical(context: ZeHandle, at: *const c_void, size: usize, physical: ZeHandle, offset: usize, access: u32) = b"zeVirtualMemMap\0";
    /// The pages that a size is made of.
    fn page_size(context: ZeHandle, device: ZeHandle, size: usize, page: *mut usize) = b"zeVirtualMemQueryPageSize\0";
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
        if base.is_null() { Err(UrResult::UNKNOWN) } else { Ok(base.expose_provenance()) }
    }

    /// `zeMemCloseIpcHandle`
    pub(crate) fn close(&self, context: ZeHandle, base: usize) -> Result<(), UrResult> {
        self.close_mem(context, std::ptr::with_exposed_provenance(base))
    }

    /// `zePhysicalMemCreate`, of memory that can be exported.
    pub(crate) fn make_physical(&self, context: ZeHandle, device: ZeHandle, size: usize) -> Result<ZeHandle, UrResult> {
        self.physical(context, device, size, &ExternalMemory::new(ExternalMemory::EXPORT, -1))
    }

    /// `zePhysicalMemCreate`, of memory that another process exported. Whether the driver keeps the descriptor is not
    /// specified.
    pub(crate) fn import_physical(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        size: usize,
        descriptor: i32,
    ) -> Result<ZeHandle, UrResult> {
        self.physical(context, device, size, &ExternalMemory::new(ExternalMemory::IMPORT, descriptor))
    }

    fn physical(
        &self,
        context: ZeHandle,
        device: ZeHandle,
        size: usize,
        external: &ExternalMemory,
    ) -> Result<ZeHandle, UrResult> {
        let desc = PhysicalMemDesc { stype: 0x20, next: (&raw const *external).cast(), flags: 0, size };
        let mut made = null_mut();
        self.create_physical(context, device, &raw const desc, &raw mut made)?;
        if made.is_null() { Err(UrResult::UNKNOWN) } else { Ok(made) }
    }

    /// `zePhysicalMemGetProperties`, for a descriptor. Whose it is, is not specified.
    pub(crate) fn export_physical(&self, context: ZeHandle, physical: ZeHandle) -> Result<i32, UrResult> {
        let mut external = ExternalMemory::new(ExternalMemory::EXPORTED, -1);
        let mut properties = PhysicalMemProperties { stype: 0x20040, next: (&raw mut external).cast(), id: 0, size: 0 };
        self.physical_properties(context, physical, &raw mut properties)?;
        // SAFETY: a live variable, read as volatile because the driver wrote to it through the chain.
        let descriptor = unsafe { (&raw const external.descriptor).read_volatile() };
        if descriptor < 0 { Err(UrResult::INVALID_VALUE) } else { Ok(descriptor) }
    }

    /// `zePhysicalMemDestroy`
    pub(crate) fn end_physical(&self, context: ZeHandle, physical: ZeHandle) {
        let _ = self.destroy_physical(context, physical);
    }

    /// `zeVirtualMemMap`
    pub(crate) fn map(
        &self,
        context: ZeHandle,
        at: usize,
        size: usize,
        (physical, offset): (ZeHandle, usize),
        access: u32,
    ) -> Result<(), UrResult> {
        self.map_physical(context, std::ptr::with_exposed_provenance(at), size, physical, offset, access)
    }

    /// The least size of physical memory.
    pub(crate) fn least_physical(&self, context: ZeHandle, device: ZeHandle) -> Result<usize, UrResult> {
        let mut page = 0;
        self.page_size(context, device, 1, &raw mut page)?;
        Ok(page)
    }

    /// `zeEventCounterBasedCreate`; `shared`: of an event that can be exported.
    pub(crate) fn make_event(&self, context: ZeHandle, device: ZeHandle, shared: bool) -> Result<ZeHandle, UrResult> {
        // Immediate and other lists, visible to the host.
        const FLAGS: u32 = 0b0111;
        const FLAG_IPC: u32 = 0b1000;
        const SCOPE_HOST: u32 = 4;
        let flags = if shared { FLAGS | FLAG_IPC } else { FLAGS };
        let desc = EventDesc { stype: 0x2003a, next: null(), flags, signal: SCOPE_HOST, wait: 0 };
        let mut made = null_mut();
        self.create_event(context, device, &raw const desc, &raw mut made)?;
        if made.is_null() { Err(UrResult::UNKNOWN) } else { Ok(made) }
    }

    /// `zeEventDestroy`
    pub(crate) fn end_event(&self, event: ZeHandle) {
        let _ = self.destroy_event(event);
    }

    /// `zeEventQueryStatus`: whether nothing is left to signal it.
    pub(crate) fn is_signalled(&self, event: ZeHandle) -> bool {
        self.query_event(event).is_ok()
    }

    /// `zeEventCounterBasedGetIpcHandle`
    pub(crate) fn export_event(&self, event: ZeHandle) -> Result<IpcHandle, UrResult> {
        let mut handle = IpcHandle([0; NATIVE_SIZE]);
        self.get_event(event, &raw mut handle)?;
        Ok(handle)
    }

    /// `zeEventCounterBasedOpenIpcHandle`
    pub(crate) fn open_event(&self, context: ZeHandle, handle: IpcHandle) -> Result<ZeHandle, UrResult> {
        let mut event = null_mut();
        self.import_event(context, handle, &raw mut event)?;
        if event.is_null() { Err(UrResult::UNKNOWN) } else { Ok(event) }
    }

    /// `zeEventCounterBasedCloseIpcHandle`
    pub(crate) fn close_event(&self, event: ZeHandle) {
        let _ = self.end_import(event);
    }

    /// `zeCommandListCreateImmediate`, of a list that works in order and on its own time.
    pub(crate) fn make_list(&self, context: ZeHandle, device: ZeHandle) -> Result<ZeHandle, UrResult> {
        const IN_ORDER: u32 = 2;
        const ASYNCHRONOUS: u32 = 2;
        // Every group of queues can wait and signal: the first will do.
        let [ordinal, index, priority] = [0; 3];
        let desc =
            QueueDesc { stype: 0xe, next: null(), ordinal, index, flags: IN_ORDER, mode: ASYNCHRONOUS, priority };
        let mut made = null_mut();
        self.create_list(context, device, &raw const desc, &raw mut made)?;
        if made.is_null() { Err(UrResult::UNKNOWN) } else { Ok(made) }
    }

    /// Has a list signal an event when another one has been signalled.
    pub(crate) fn signal_behind(&self, list: ZeHandle, first: ZeHandle, event: ZeHandle) -> Result<(), UrResult> {
        self.append_wait(list, 1, &raw const first)?;
        self.append_signal(list, event)
    }

    /// Waits until a list has done what was appended to it, and ends it.
    pub(crate) fn end_list(&self, list: ZeHandle) {
        let _ = self.finish_list(list, u64::MAX);
        let _ = self.destroy_list(list);
    }

    /// Tries something in a context of our own, on the driver of that device.
    pub(crate) fn in_a_context(
        &self,
        device: ZeHandle,
        attempt: impl FnOnce(ZeHandle) -> Result<(), UrResult>,
    ) -> Result<(), UrResult> {
        let drivers = list(|count, place| self.drivers(count, place))?;
        let is_its = |driver: &ZeHandle| {
            list(|count, place| self.devices(*driver, count, place)).is_ok_and(|devices| devices.contains(&device))
        };
        // A part of a device is in no list: with one driver it can only be that one's.
        let of_device = drivers.iter().find(|driver| is_its(driver));
        let driver = of_device.or_else(|| drivers.first().filter(|_| drivers.len() == 1));
        let driver = driver.copied().ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        let desc = ContextDesc { stype: 0xd, next: null(), flags: 0 };
        let mut context = null_mut();
        self.create_context(driver, &raw const desc, &raw mut context)?;
        let result = attempt(context);
        let _ = self.destroy_context(context);
        result
    }
}

/// All that a function of two calls lists: how many there are, then which.
fn list(ask: impl Fn(*mut u32, *mut ZeHandle) -> Result<(), UrResult>) -> Result<Vec<ZeHandle>, UrResult> {
    let mut count = 0;
    ask(&raw mut count, null_mut())?;
    let mut found = vec![null_mut(); count as usize];
    ask(&raw mut count, found.as_mut_ptr())?;
    found.truncate(count as usize);
    Ok(found)
}
