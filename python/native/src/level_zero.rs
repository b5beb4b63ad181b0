//! Memory where libsycl has no functions for it (2025.3): over urscope's own Level Zero backend.
//!
//! libsycl gives out the Level Zero handles of contexts and devices (`getNative`), which is all that
//! the backend needs. Handle data have urscope's form, so a process with another runtime can open them
//! only if urscope's backend serves it, too.
//!
//! In a process under `liburscope.so` the same backend is reached through Unified Runtime
//! ([`Recorded`]), so that the calls are recorded.

use std::{ffi::c_void, sync::Once};

use urscope_schema::api::{self, ResultCode};
use urscope_shim::backend::{self, level_zero::without_adapter};
use urscope_shim::raw::processes::fork;

use crate::references::{ContextRef, DeviceRef};
use crate::sycl::{Function, HandleData, Sycl};
use crate::{guarded, library::Library, recorded::Recorded};

/// `sycl::backend::ext_oneapi_level_zero`
const LEVEL_ZERO: u8 = 2;

/// The functions of libsycl that return backends and native handles.
pub(crate) struct LevelZero {
    context: Function,
    context_backend: Function,
    device: Function,
    device_backend: Function,
}

static FORK_HANDLER: Once = Once::new();

impl LevelZero {
    /// With the libsycl that dpctl uses; `None` if it does not give out handles.
    pub(crate) fn from_library(dpctl: &Library) -> Option<Self> {
        let own = Self {
            context: dpctl.symbol(c"_ZNK4sycl3_V17context9getNativeEv")?,
            context_backend: dpctl.symbol(c"_ZNK4sycl3_V17context11get_backendEv")?,
            device: dpctl.symbol(c"_ZNK4sycl3_V16device9getNativeEv")?,
            device_backend: dpctl.symbol(c"_ZNK4sycl3_V16device11get_backendEv")?,
        };
        // A forked child must not put or close what its parent shared.
        FORK_HANDLER.call_once(|| fork::on_fork(|| (), || (), backend::after_fork_in_child));
        Some(own)
    }

    /// Whether the driver can share memory.
    pub(crate) fn is_available() -> bool {
        without_adapter::shares_memory()
    }

    pub(crate) fn shares_memory(&self, device: DeviceRef) -> Result<bool, String> {
        // SAFETY: `backend sycl::device::get_backend() const`
        let [answer, _] = unsafe { guarded::call(self.device_backend, [device.word()])? };
        Ok(answer.to_le_bytes().first() == Some(&LEVEL_ZERO) && Self::is_available())
    }

    /// The driver's handle of a context.
    fn context(&self, context: ContextRef) -> Result<*mut c_void, String> {
        let context = context.word();
        // SAFETY: `backend sycl::context::get_backend() const`
        let [backend, _] = unsafe { guarded::call(self.context_backend, [context])? };
        if backend.to_le_bytes().first() != Some(&LEVEL_ZERO) {
            return Err("only memory of Level Zero devices can be shared with this libsycl".to_owned());
        }
        // SAFETY: `ur_native_handle_t sycl::context::getNative() const`, which is as wide as a pointer.
        let [native, _] = unsafe { guarded::call(self.context, [context])? };
        Ok(std::ptr::with_exposed_provenance_mut(native))
    }

    /// The driver's handle of a device.
    fn device(&self, device: DeviceRef) -> Result<*mut c_void, String> {
        // SAFETY: `ur_native_handle_t sycl::device::getNative() const`
        let [native, _] = unsafe { guarded::call(self.device, [device.word()])? };
        Ok(std::ptr::with_exposed_provenance_mut(native))
    }

    /// The driver's handle of a context, and the handles of Unified Runtime that `liburscope.so` has for it
    /// and the first of its devices.
    fn recorded(&self, sycl: &Sycl, context: ContextRef) -> Result<(*mut c_void, Option<Recorded>), String> {
        let native = self.context(context)?;
        let devices = sycl.devices_of(context, |device| self.device(device))?;
        // SAFETY: both live as long as libsycl's.
        let recorded = devices.first().and_then(|device| unsafe { Recorded::around(native, *device) });
        Ok((native, recorded))
    }

    pub(crate) fn get(&self, sycl: &Sycl, pointer: *mut c_void, context: ContextRef) -> Result<HandleData, String> {
        let got = match self.recorded(sycl, context)? {
            (_, Some(recorded)) => recorded.get(pointer),
            // SAFETY: the driver's context lives as long as libsycl's.
            (native, None) => unsafe { without_adapter::get(native, pointer) },
        };
        got.map(|(data, size)| HandleData { data, size }).map_err(|result| match result {
            ResultCode::INVALID_ARGUMENT => "the pointer is not in USM memory of this context".to_owned(),
            other => other.text_of(api::Function::urIPCGetMemHandleExp),
        })
    }

    /// # Safety
    ///
    /// The context must be the one of the get.
    pub(crate) unsafe fn put(&self, handle: HandleData, context: ContextRef) -> Result<(), String> {
        let put = match Recorded::take(handle.data) {
            Some(recorded) => recorded.put(handle.data),
            // SAFETY: the caller's promise.
            None => unsafe { without_adapter::put(self.context(context)?, handle.data) },
        };
        put.map_err(|result| result.text_of(api::Function::urIPCPutMemHandleExp))
    }

    pub(crate) fn open(&self, data: &[u8], context: ContextRef, device: DeviceRef) -> Result<*mut c_void, String> {
        let context = self.context(context)?;
        let device = self.device(device)?;
        // SAFETY: both live as long as libsycl's.
        let opened = match unsafe { Recorded::around(context, device) } {
            Some(recorded) => recorded.open(data),
            // SAFETY: as above.
            None => unsafe { without_adapter::open(context, device, data) },
        };
        opened.map_err(|result| match result {
            ResultCode::INVALID_VALUE => {
                "the bytes are not those of a handle that is valid here: they are damaged, were put, come from another kind of \
                 runtime, or their producer has ended"
                    .to_owned()
            }
            ResultCode::INVALID_ARGUMENT => {
                "the kernel does not let this process take a descriptor from the producer".to_owned()
            }
            other => other.text_of(api::Function::urIPCOpenMemHandleExp),
        })
    }

    pub(crate) fn close(&self, pointer: *mut c_void, context: ContextRef) -> Result<(), String> {
        let closed = match Recorded::take(pointer) {
            Some(recorded) => recorded.close(pointer),
            // SAFETY: the driver's context lives as long as libsycl's.
            None => unsafe { without_adapter::close(self.context(context)?, pointer) },
        };
        closed.map_err(|result| result.text_of(api::Function::urIPCCloseMemHandleExp))
    }
}
