//! The functions of libsycl that share memory between processes.
//!
//! libsycl exports them by names that its ABI promises: `ipc::memory::{get, put, close}` (2026.2), the same in the older namespace
//! `ipc_memory` (from 2026.0), and `detail::openIPCMemHandle`, which the inline `open` of the header calls. The types on their way are
//! simple: a reference is an address, and a handle two words, which are returned in registers.

use std::{
    ffi::{CStr, c_void},
    ptr::{self, NonNull},
    sync::OnceLock,
};

use crate::{guarded::Guard, library::Library};

/// A `sycl::context` of the caller, as dpctl's interface passes it.
pub(crate) type ContextRef = *const c_void;
/// A `sycl::device` of the caller.
pub(crate) type DeviceRef = *const c_void;

/// The handle data of one get: bytes that the runtime owns until they are put.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HandleData {
    pub(crate) data: *mut c_void,
    pub(crate) size: usize,
}

type Function = NonNull<c_void>;

/// dpctl's interface library, and what it and the libsycl behind it offer.
pub(crate) struct Sycl {
    guard: Guard,
    copy_context: unsafe extern "C" fn(ContextRef) -> ContextRef,
    delete_context: unsafe extern "C" fn(ContextRef),
    has_aspect: Function,
    memory: Option<Memory>,
}

struct Memory {
    get: Function,
    put: Function,
    open: Function,
    close: Function,
}

// SAFETY: what is in it are addresses of functions.
unsafe impl Send for Sycl {}
// SAFETY: as above; the functions may be called by any thread.
unsafe impl Sync for Sycl {}

/// The file of dpctl's C interface. Whoever has references of dpctl has loaded it, and it depends on the libsycl that made them.
const DPCTL: &str = "libDPCTLSyclInterface.so";

/// `sycl::aspect::ext_oneapi_ipc_memory`, which is the same in all releases that have it.
const IPC_MEMORY: usize = 88;

/// The libsycl that dpctl uses. The error is a sentence for people.
pub(crate) fn sycl() -> Result<&'static Sycl, &'static str> {
    static SYCL: OnceLock<Sycl> = OnceLock::new();
    if let Some(sycl) = SYCL.get() {
        return Ok(sycl);
    }
    let library = Library::loaded(DPCTL).ok_or("dpctl is not loaded in this process: import dpctl first")?;
    let sycl = Sycl::of(&library).ok_or("the libsycl that dpctl uses lacks functions that every release has")?;
    Ok(SYCL.get_or_init(|| sycl))
}

impl Sycl {
    fn of(dpctl: &Library) -> Option<Self> {
        let copy = dpctl.symbol(c"DPCTLContext_Copy")?;
        let delete = dpctl.symbol(c"DPCTLContext_Delete")?;
        // SAFETY: dpctl's header declares them with these signatures.
        let (copy_context, delete_context) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(ContextRef) -> ContextRef>(copy.as_ptr()),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(ContextRef)>(delete.as_ptr()),
            )
        };
        Some(Self {
            guard: Guard::of(dpctl)?,
            copy_context,
            delete_context,
            has_aspect: dpctl.symbol(c"_ZNK4sycl3_V16device3hasENS0_6aspectE")?,
            memory: Memory::of(dpctl),
        })
    }

    /// Whether this libsycl has the functions.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    fn memory(&self) -> Result<&Memory, String> {
        self.memory
            .as_ref()
            .ok_or_else(|| "this libsycl cannot share memory between processes: it is older than 2026.0".to_owned())
    }

    /// Calls a function of libsycl. The error is what its exception says.
    ///
    /// # Safety
    ///
    /// The function must take these arguments.
    unsafe fn call(&self, function: Function, arguments: [usize; 4]) -> Result<[usize; 2], String> {
        // SAFETY: the caller's promise.
        unsafe { self.guard.call(function.as_ptr(), arguments) }
    }

    /// Whether memory of a device can be shared.
    ///
    /// # Safety
    ///
    /// The device must be one of this libsycl.
    pub(crate) unsafe fn shares_memory(&self, device: DeviceRef) -> Result<bool, String> {
        if !self.has_memory() {
            return Ok(false);
        }
        // SAFETY: `bool sycl::device::has(aspect) const`; the device is the caller's promise.
        let [answer, _] = unsafe { self.call(self.has_aspect, [device.expose_provenance(), IPC_MEMORY, 0, 0])? };
        Ok(answer.to_le_bytes().first() == Some(&1))
    }

    /// `ipc::memory::get`
    ///
    /// # Safety
    ///
    /// The context must be one of this libsycl.
    pub(crate) unsafe fn get(&self, pointer: *mut c_void, context: ContextRef) -> Result<HandleData, String> {
        // SAFETY: `handle get(void *, const context &)`; a handle is trivial and has two words.
        let [data, size] =
            unsafe { self.call(self.memory()?.get, [pointer.expose_provenance(), context.expose_provenance(), 0, 0])? };
        Ok(HandleData { data: ptr::with_exposed_provenance_mut(data), size })
    }

    /// `ipc::memory::put`
    ///
    /// # Safety
    ///
    /// The context must be one of this libsycl, and the handle data must come from [`Self::get`] and not have been put.
    pub(crate) unsafe fn put(&self, mut handle: HandleData, context: ContextRef) -> Result<(), String> {
        // SAFETY: `void put(handle &, const context &)`
        unsafe {
            self.call(self.memory()?.put, [(&raw mut handle).expose_provenance(), context.expose_provenance(), 0, 0])
        }
        .map(drop)
    }

    /// `ipc::memory::open`
    ///
    /// # Safety
    ///
    /// The context and the device must be of this libsycl.
    pub(crate) unsafe fn open(
        &self,
        data: &[u8],
        context: ContextRef,
        device: DeviceRef,
    ) -> Result<*mut c_void, String> {
        // v1 adapters write into the bytes that they open.
        let mut copy = data.to_vec();
        let arguments = [
            copy.as_mut_ptr().expose_provenance(),
            copy.len(),
            context.expose_provenance(),
            device.expose_provenance(),
        ];
        // SAFETY: `void *openIPCMemHandle(const std::byte *, size_t, const context &, const device &)`
        let [pointer, _] = unsafe { self.call(self.memory()?.open, arguments)? };
        Ok(ptr::with_exposed_provenance_mut(pointer))
    }

    /// `ipc::memory::close`
    ///
    /// # Safety
    ///
    /// The context must be one of this libsycl.
    pub(crate) unsafe fn close(&self, pointer: *mut c_void, context: ContextRef) -> Result<(), String> {
        // SAFETY: `void close(void *, const context &)`
        unsafe { self.call(self.memory()?.close, [pointer.expose_provenance(), context.expose_provenance(), 0, 0]) }
            .map(drop)
    }
}

impl Memory {
    /// From the newest namespace that has all three.
    fn of(library: &Library) -> Option<Self> {
        let open = library.symbol(c"_ZN4sycl3_V16detail16openIPCMemHandleEPKSt4bytemRKNS0_7contextERKNS0_6deviceE")?;
        let names: [[&CStr; 3]; 2] = [
            [
                c"_ZN4sycl3_V13ext6oneapi12experimental3ipc6memory3getEPvRKNS0_7contextE",
                c"_ZN4sycl3_V13ext6oneapi12experimental3ipc6memory3putERNS4_6handleERKNS0_7contextE",
                c"_ZN4sycl3_V13ext6oneapi12experimental3ipc6memory5closeEPvRKNS0_7contextE",
            ],
            [
                c"_ZN4sycl3_V13ext6oneapi12experimental10ipc_memory3getEPvRKNS0_7contextE",
                c"_ZN4sycl3_V13ext6oneapi12experimental10ipc_memory3putERNS4_6handleERKNS0_7contextE",
                c"_ZN4sycl3_V13ext6oneapi12experimental10ipc_memory5closeEPvRKNS0_7contextE",
            ],
        ];
        names.iter().find_map(|[get, put, close]| {
            Some(Self { get: library.symbol(get)?, put: library.symbol(put)?, open, close: library.symbol(close)? })
        })
    }
}

/// A copy of a caller's context, which keeps the context alive.
pub(crate) struct OwnContext {
    sycl: &'static Sycl,
    context: ContextRef,
}

// SAFETY: SYCL's objects may be used by any thread.
unsafe impl Send for OwnContext {}

impl OwnContext {
    /// # Safety
    ///
    /// The context must be one of this libsycl.
    pub(crate) unsafe fn copy(sycl: &'static Sycl, context: ContextRef) -> Result<Self, String> {
        // SAFETY: the caller's promise. dpctl returns null where copying failed.
        let context = unsafe { (sycl.copy_context)(context) };
        if context.is_null() { Err("the context could not be copied".to_owned()) } else { Ok(Self { sycl, context }) }
    }

    pub(crate) fn get(&self) -> ContextRef {
        self.context
    }
}

impl Drop for OwnContext {
    fn drop(&mut self) {
        // SAFETY: it is our own copy.
        unsafe { (self.sycl.delete_context)(self.context) };
    }
}
