//! Unified Runtime's functions in a process under `liburscope.so`, for a libsycl that has none of its own.
//!
//! `liburscope.so` exports the functions, records the calls, and serves them by its backend. It also
//! has the handles of Unified Runtime for those of Level Zero, which libsycl does not return.

use std::ffi::{c_int, c_void};
use std::{collections::HashMap, ptr::null_mut, sync::OnceLock};

use parking_lot::Mutex;
use urscope_schema::api::ResultCode;

use crate::library::Library;

type Handle = *mut c_void;

/// What `liburscope.so` exports.
struct Exports {
    handles_around: unsafe extern "C" fn(Handle, Handle, *mut Handle, *mut Handle) -> c_int,
    get: unsafe extern "C" fn(Handle, *mut c_void, *mut *mut c_void, *mut usize) -> ResultCode,
    put: unsafe extern "C" fn(Handle, *mut c_void) -> ResultCode,
    open: unsafe extern "C" fn(Handle, Handle, *mut u8, usize, *mut *mut c_void) -> ResultCode,
    close: unsafe extern "C" fn(Handle, *mut c_void) -> ResultCode,
}

impl Exports {
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Exports>> = OnceLock::new();
        // SAFETY: only `liburscope.so` has the first function, and then the others are its own, too; its
        // sources give them these signatures (`shim/preload`, `ur_api.h`).
        FOUND
            .get_or_init(|| unsafe {
                let all = Library::all()?;
                Some(Self {
                    handles_around: all.function(c"urscope_handles_around")?,
                    get: all.function(c"urIPCGetMemHandleExp")?,
                    put: all.function(c"urIPCPutMemHandleExp")?,
                    open: all.function(c"urIPCOpenMemHandleExp")?,
                    close: all.function(c"urIPCCloseMemHandleExp")?,
                })
            })
            .as_ref()
    }
}

fn done(result: ResultCode) -> Result<(), ResultCode> {
    if result.is_success() { Ok(()) } else { Err(result) }
}

/// A context of Unified Runtime, and one of its devices.
#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    exports: &'static Exports,
    context: Handle,
    device: Handle,
}

// SAFETY: handles of Unified Runtime may be used by any thread.
unsafe impl Send for Recorded {}

/// The context and the device that handle data and mappings were made with, by address.
static ORIGINS: Mutex<Option<HashMap<usize, Recorded>>> = Mutex::new(None);

impl Recorded {
    /// The handles of Unified Runtime for these handles of Level Zero; `None` if `liburscope.so` is not in
    /// this process or does not serve them.
    ///
    /// # Safety
    ///
    /// Both are live handles.
    pub(crate) unsafe fn around(context: Handle, device: Handle) -> Option<Self> {
        let exports = Exports::get()?;
        let mut own_context = null_mut();
        let mut own_device = null_mut();
        // SAFETY: the caller's promise; the out-parameters are live variables.
        let found =
            unsafe { (exports.handles_around)(context, device, &raw mut own_context, &raw mut own_device) } == 1;
        found.then_some(Self { exports, context: own_context, device: own_device })
    }

    /// Removes the entry of the handle data or the mapping at an address; `None` if they were made in another way.
    pub(crate) fn take(address: *mut c_void) -> Option<Self> {
        ORIGINS.lock().as_mut()?.remove(&address.addr())
    }

    fn remember(self, address: *mut c_void) {
        ORIGINS.lock().get_or_insert_default().insert(address.addr(), self);
    }

    /// `urIPCGetMemHandleExp`: the address of the handle data, and their length in bytes.
    pub(crate) fn get(self, pointer: *mut c_void) -> Result<(*mut c_void, usize), ResultCode> {
        let mut data = null_mut();
        let mut size = 0;
        // SAFETY: the context lives as long as libsycl's; the out-parameters are live variables.
        done(unsafe { (self.exports.get)(self.context, pointer, &raw mut data, &raw mut size) })?;
        self.remember(data);
        Ok((data, size))
    }

    /// `urIPCPutMemHandleExp`
    pub(crate) fn put(self, data: *mut c_void) -> Result<(), ResultCode> {
        // SAFETY: as above; unknown data are refused.
        done(unsafe { (self.exports.put)(self.context, data) })
    }

    /// `urIPCOpenMemHandleExp`: the address of the memory.
    pub(crate) fn open(self, bytes: &[u8]) -> Result<*mut c_void, ResultCode> {
        // The parameter is not constant in the header.
        let mut copy = bytes.to_vec();
        let mut pointer = null_mut();
        // SAFETY: as above; so many bytes are there.
        done(unsafe {
            (self.exports.open)(self.context, self.device, copy.as_mut_ptr(), copy.len(), &raw mut pointer)
        })?;
        self.remember(pointer);
        Ok(pointer)
    }

    /// `urIPCCloseMemHandleExp`
    pub(crate) fn close(self, pointer: *mut c_void) -> Result<(), ResultCode> {
        // SAFETY: as above; unknown pointers are refused.
        done(unsafe { (self.exports.close)(self.context, pointer) })
    }
}
