//! The functions of libsycl that share memory between processes.
//!
//! libsycl exports them by names that its ABI promises: `ipc::memory::{get, put, close}` (2026.2), the
//! same in the older namespace `ipc_memory` (from 2026.0), and `detail::openIPCMemHandle`, which the
//! inline `open` of the header calls. The types on their way are simple: a reference is an address, and
//! a handle two words, which are returned in registers.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use crate::references::{ContextRef, DeviceRef, EventRef, QueueRef};
use crate::{
    event::Events, guarded, level_zero::LevelZero, library::Library, physical::PhysicalMemory, shared::Shared,
};

/// The handle data of one get: bytes that the runtime owns until they are put.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HandleData {
    pub(crate) data: *mut c_void,
    pub(crate) size: usize,
}

pub(crate) type Function = NonNull<c_void>;

/// A structure of functions of libsycl, by their symbols.
macro_rules! functions {
    ($(#[$doc:meta])* $type:ident: $($name:ident = $symbol:literal;)*) => {
        $(#[$doc])*
        pub(crate) struct $type {
            $(pub(crate) $name: crate::sycl::Function,)*
        }

        impl $type {
            /// The functions of the libsycl that dpctl uses; `None` unless it has all of them.
            pub(crate) fn from_library(dpctl: &crate::library::Library) -> Option<Self> {
                Some(Self { $($name: dpctl.symbol($symbol)?,)* })
            }
        }
    };
}
pub(crate) use functions;

/// The functions of dpctl's interface library, and of the libsycl that it uses.
pub(crate) struct Sycl {
    copy_context: extern "C" fn(ContextRef) -> Option<ContextRef>,
    delete_context: unsafe extern "C" fn(ContextRef),
    context_devices: extern "C" fn(ContextRef) -> *mut c_void,
    devices: Devices,
    copy_queue: extern "C" fn(QueueRef) -> Option<QueueRef>,
    delete_queue: unsafe extern "C" fn(QueueRef),
    copy_event: unsafe extern "C" fn(*const c_void) -> Option<EventRef>,
    has_aspect: Function,
    uuid: Option<Function>,
    memory: Option<Route>,
    physical_memory: Option<PhysicalMemory>,
    events: Option<Events>,
}

/// dpctl's functions for a vector of devices.
struct Devices {
    size: unsafe extern "C" fn(*mut c_void) -> usize,
    at: unsafe extern "C" fn(*mut c_void, usize) -> Option<DeviceRef>,
    delete_device: unsafe extern "C" fn(DeviceRef),
    delete: unsafe extern "C" fn(*mut c_void),
}

/// The implementation that shares memory.
enum Route {
    /// libsycl.
    Runtime(Memory),
    /// urscope's own backend: this libsycl has no functions for it.
    LevelZero(LevelZero),
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

/// The file of dpctl's C interface. Whoever has references of dpctl has loaded it, and it depends on
/// the libsycl that made them.
const DPCTL: &str = "libDPCTLSyclInterface.so";

/// `device::get_info<ext::intel::info::device::uuid>()`
const UUID: &CStr = c"_ZNK4sycl3_V16device13get_info_implINS0_3ext5intel4info6device4uuidEEENS0_6detail11ABINeutralTINS8_19is_device_info_descIT_E11return_typeEE4typeEv";

/// `sycl::aspect::ext_oneapi_ipc_memory`, which is the same in all releases that have it, as the two that follow.
const IPC_MEMORY: usize = 88;
/// `sycl::aspect::ext_oneapi_ipc_physical_memory`
const IPC_PHYSICAL_MEMORY: usize = 96;
/// `sycl::aspect::ext_oneapi_ipc_event`
const IPC_EVENT: usize = 99;

/// The libsycl that dpctl uses. The error is a sentence for people.
pub(crate) fn sycl() -> Result<&'static Sycl, &'static str> {
    static SYCL: OnceLock<Sycl> = OnceLock::new();
    if let Some(sycl) = SYCL.get() {
        return Ok(sycl);
    }
    let library = Library::loaded(DPCTL).ok_or("dpctl is not loaded in this process: import dpctl first")?;
    let sycl =
        Sycl::from_library(&library).ok_or("the libsycl that dpctl uses lacks functions that every release has")?;
    Ok(SYCL.get_or_init(|| sycl))
}

impl Sycl {
    fn from_library(dpctl: &Library) -> Option<Self> {
        // SAFETY: dpctl's headers declare its functions with these signatures. They throw nothing.
        unsafe {
            Some(Self {
                copy_context: dpctl.function(c"DPCTLContext_Copy")?,
                delete_context: dpctl.function(c"DPCTLContext_Delete")?,
                context_devices: dpctl.function(c"DPCTLContext_GetDevices")?,
                devices: Devices {
                    size: dpctl.function(c"DPCTLDeviceVector_Size")?,
                    at: dpctl.function(c"DPCTLDeviceVector_GetAt")?,
                    delete_device: dpctl.function(c"DPCTLDevice_Delete")?,
                    delete: dpctl.function(c"DPCTLDeviceVector_Delete")?,
                },
                copy_queue: dpctl.function(c"DPCTLQueue_Copy")?,
                delete_queue: dpctl.function(c"DPCTLQueue_Delete")?,
                copy_event: dpctl.function(c"DPCTLEvent_Copy")?,
                has_aspect: dpctl.symbol(c"_ZNK4sycl3_V16device3hasENS0_6aspectE")?,
                memory: (Memory::from_library(dpctl).map(Route::Runtime))
                    .or_else(|| LevelZero::from_library(dpctl).map(Route::LevelZero)),
                uuid: dpctl.symbol(UUID),
                physical_memory: PhysicalMemory::from_library(dpctl),
                events: Events::from_library(dpctl),
            })
        }
    }

    /// Whether memory can be shared with this libsycl.
    pub(crate) fn has_memory(&self) -> bool {
        match &self.memory {
            Some(Route::Runtime(_)) => true,
            Some(Route::LevelZero(_)) => LevelZero::is_available(),
            None => false,
        }
    }

    fn memory(&self) -> Result<&Route, String> {
        self.memory.as_ref().ok_or_else(|| {
            "this libsycl cannot share memory between processes, and does not give out the handles of Level Zero with which urscope \
             could"
                .to_owned()
        })
    }

    /// Whether memory of a device can be shared.
    pub(crate) fn shares_memory(&self, device: DeviceRef) -> Result<bool, String> {
        match &self.memory {
            Some(Route::Runtime(_)) => self.has_aspect(device, IPC_MEMORY),
            Some(Route::LevelZero(own)) => own.shares_memory(device),
            None => Ok(false),
        }
    }

    pub(crate) fn physical_memory(&self) -> Result<&PhysicalMemory, String> {
        let has = self.physical_memory.as_ref();
        has.ok_or_else(|| {
            "this libsycl cannot share physical memory between processes: it is older than 2026.2".to_owned()
        })
    }

    pub(crate) fn events(&self) -> Result<&Events, String> {
        let has = self.events.as_ref();
        has.ok_or_else(|| "this libsycl cannot share events between processes: it is older than 2026.2".to_owned())
    }

    /// Whether physical memory of a device can be shared.
    pub(crate) fn shares_physical_memory(&self, device: DeviceRef) -> Result<bool, String> {
        Ok(self.physical_memory.is_some() && self.has_aspect(device, IPC_PHYSICAL_MEMORY)?)
    }

    /// Whether events of a device can be shared.
    pub(crate) fn shares_events(&self, device: DeviceRef) -> Result<bool, String> {
        Ok(self.events.is_some() && self.has_aspect(device, IPC_EVENT)?)
    }

    /// The UUID of a device. The error says why it has none, which is so for many kinds of devices.
    pub(crate) fn uuid(&self, device: DeviceRef) -> Result<[u8; 16], String> {
        let function = self.uuid.ok_or_else(|| "this libsycl does not tell the UUIDs of devices".to_owned())?;
        // SAFETY: `std::array<unsigned char, 16> device::get_info_impl<…>() const`; so many bytes are returned
        // in two registers.
        let [first, second] = unsafe { guarded::call(function, [device.word()])? };
        let mut uuid = [0; 16];
        uuid.copy_from_slice([first, second].map(usize::to_le_bytes).as_flattened());
        Ok(uuid)
    }

    /// An event for dpctl, which deletes it.
    pub(crate) fn event_of(&self, event: &Shared) -> Result<EventRef, String> {
        // SAFETY: libsycl has just made the event.
        let copy = unsafe { (self.copy_event)(ptr::with_exposed_provenance(event.address())) };
        copy.ok_or_else(|| "the event could not be copied".to_owned())
    }

    fn has_aspect(&self, device: DeviceRef, aspect: usize) -> Result<bool, String> {
        // SAFETY: `bool sycl::device::has(aspect) const`
        let [answer, _] = unsafe { guarded::call(self.has_aspect, [device.word(), aspect])? };
        Ok(answer.to_le_bytes().first() == Some(&1))
    }

    /// The results of `of` for each device of a context.
    pub(crate) fn devices_of<T>(
        &self,
        context: ContextRef,
        of: impl Fn(DeviceRef) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let vector = (self.context_devices)(context);
        if vector.is_null() {
            return Err("dpctl does not name the devices of the context".to_owned());
        }
        // SAFETY: it is the vector that dpctl made.
        let count = unsafe { (self.devices.size)(vector) };
        let answers = (0..count).map(|at| {
            // SAFETY: there are so many.
            let device = unsafe { (self.devices.at)(vector, at) };
            let device = device.ok_or_else(|| "a device could not be copied".to_owned())?;
            let answer = of(device);
            // SAFETY: it is a copy of our own, which ends after its use.
            unsafe { (self.devices.delete_device)(device) };
            answer
        });
        let answers = answers.collect();
        // SAFETY: it is not used any more.
        unsafe { (self.devices.delete)(vector) };
        answers
    }

    /// `ipc::memory::get`
    pub(crate) fn get(&self, pointer: *mut c_void, context: ContextRef) -> Result<HandleData, String> {
        let memory = match self.memory()? {
            Route::Runtime(memory) => memory,
            Route::LevelZero(own) => return own.get(self, pointer, context),
        };
        // SAFETY: `handle get(void *, const context &)`; a handle is trivial and has two words.
        let [data, size] = unsafe { guarded::call(memory.get, [pointer.expose_provenance(), context.word()])? };
        Ok(HandleData { data: ptr::with_exposed_provenance_mut(data), size })
    }

    /// `ipc::memory::put`
    ///
    /// # Safety
    ///
    /// The handle data must come from [`Self::get`] in this context, and not have been put.
    pub(crate) unsafe fn put(&self, handle: HandleData, context: ContextRef) -> Result<(), String> {
        let memory = match self.memory()? {
            Route::Runtime(memory) => memory,
            // SAFETY: the caller's promise.
            Route::LevelZero(own) => return unsafe { own.put(handle, context) },
        };
        // SAFETY: the caller's promise.
        unsafe { put_by(memory.put, handle, context) }
    }

    /// `ipc::memory::open`
    pub(crate) fn open(&self, data: &[u8], context: ContextRef, device: DeviceRef) -> Result<*mut c_void, String> {
        let memory = match self.memory()? {
            Route::Runtime(memory) => memory,
            Route::LevelZero(own) => return own.open(data, context, device),
        };
        // v1 adapters write into the bytes that they open.
        let mut copy = data.to_vec();
        let arguments = [copy.as_mut_ptr().expose_provenance(), copy.len(), context.word(), device.word()];
        // SAFETY: `void *openIPCMemHandle(const std::byte *, size_t, const context &, const device &)`
        let [pointer, _] = unsafe { guarded::call(memory.open, arguments)? };
        Ok(ptr::with_exposed_provenance_mut(pointer))
    }

    /// `ipc::memory::close`
    pub(crate) fn close(&self, pointer: *mut c_void, context: ContextRef) -> Result<(), String> {
        let memory = match self.memory()? {
            Route::Runtime(memory) => memory,
            Route::LevelZero(own) => return own.close(pointer, context),
        };
        // SAFETY: `void close(void *, const context &)`
        unsafe { guarded::call(memory.close, [pointer.expose_provenance(), context.word()]) }.map(drop)
    }
}

/// Calls a function that puts handle data.
///
/// # Safety
///
/// As for [`Sycl::put`], with data of a get of the same kind of object.
pub(crate) unsafe fn put_by(put: Function, mut handle: HandleData, context: ContextRef) -> Result<(), String> {
    // SAFETY: `void put(handle &, const context &)`
    unsafe { guarded::call(put, [(&raw mut handle).expose_provenance(), context.word()]) }.map(drop)
}

impl Memory {
    /// From the newest namespace that has all three.
    fn from_library(library: &Library) -> Option<Self> {
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

/// A copy of a caller's context or queue, which keeps it alive.
pub(crate) struct OwnCopy<R: Copy> {
    object: R,
    delete: unsafe extern "C" fn(R),
}

// SAFETY: SYCL's objects may be used by any thread.
unsafe impl<R: Copy> Send for OwnCopy<R> {}

impl OwnCopy<ContextRef> {
    pub(crate) fn of_context(sycl: &'static Sycl, context: ContextRef) -> Result<Self, String> {
        Self::new((sycl.copy_context)(context), sycl.delete_context, "context")
    }
}

impl OwnCopy<QueueRef> {
    pub(crate) fn of_queue(sycl: &'static Sycl, queue: QueueRef) -> Result<Self, String> {
        Self::new((sycl.copy_queue)(queue), sycl.delete_queue, "queue")
    }
}

impl<R: Copy> OwnCopy<R> {
    /// The copy that dpctl has made: null where that failed.
    fn new(object: Option<R>, delete: unsafe extern "C" fn(R), what: &str) -> Result<Self, String> {
        let object = object.ok_or_else(|| format!("the {what} could not be copied"))?;
        Ok(Self { object, delete })
    }

    pub(crate) fn get(&self) -> R {
        self.object
    }
}

impl<R: Copy> Drop for OwnCopy<R> {
    fn drop(&mut self) {
        // SAFETY: it is our own copy.
        unsafe { (self.delete)(self.object) };
    }
}
