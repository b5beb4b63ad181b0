//! Memory where libsycl has no functions for it (2025.3): over urscope's own Level Zero backend.
//!
//! libsycl gives out the Level Zero handles of contexts and devices (`getNative`), which is all that
//! the backend needs. Handle data have urscope's form, so a process with another runtime can open them
//! only if urscope's backend serves it, too.
//!
//! In a process under `liburscope.so` the same backend is reached through Unified Runtime
//! ([`Recorded`]), so that the calls are recorded.

use std::{ffi::c_void, sync::Once};

use urscope_schema::api::{self, UrResult};
use urscope_shim::{
    backend::{self, level_zero::without_adapter},
    raw::fork,
};

use crate::{
    library::Library,
    recorded::Recorded,
    sycl::{ContextRef, DeviceRef, Function, HandleData, Sycl},
};

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
    pub(crate) fn of(dpctl: &Library) -> Option<Self> {
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

    /// # Safety
    ///
    /// The device must be one of this libsycl.
    pub(crate) unsafe fn shares_memory(&self, sycl: &Sycl, device: DeviceRef) -> Result<bool, String> {
        // SAFETY: `backend sycl::device::get_backend() const`; the device is the caller's promise.
        let [answer, _] = unsafe { sycl.call(self.device_backend, [device.expose_provenance()])? };
        Ok(answer.to_le_bytes().first() == Some(&LEVEL_ZERO) && Self::is_available())
    }

    /// The driver's handle of a context.
    ///
    /// # Safety
    ///
    /// The context must be one of this libsycl.
    unsafe fn context(&self, sycl: &Sycl, context: ContextRef) -> Result<*mut c_void, String> {
        let context = context.expose_provenance();
        // SAFETY: `backend sycl::context::get_backend() const`; the context is the caller's promise.
        let [backend, _] = unsafe { sycl.call(self.context_backend, [context])? };
        if backend.to_le_bytes().first() != Some(&LEVEL_ZERO) {
            return Err("only memory of Level Zero devices can be shared with this libsycl".to_owned());
        }
        // SAFETY: `ur_native_handle_t sycl::context::getNative() const`, which is as wide as a pointer.
        let [native, _] = unsafe { sycl.call(self.context, [context])? };
        Ok(std::ptr::with_exposed_provenance_mut(native))
    }

    /// The driver's handle of a device.
    ///
    /// # Safety
    ///
    /// The device must be one of this libsycl and of Level Zero.
    unsafe fn device(&self, sycl: &Sycl, device: DeviceRef) -> Result<*mut c_void, String> {
        // SAFETY: `ur_native_handle_t sycl::device::getNative() const`
        let [native, _] = unsafe { sycl.call(self.device, [device.expose_provenance()])? };
        Ok(std::ptr::with_exposed_provenance_mut(native))
    }

    /// The driver's handle of a context, and the handles of Unified Runtime that `liburscope.so` has for it
    /// and the first of its devices.
    ///
    /// # Safety
    ///
    /// The context must be one of this libsycl.
    unsafe fn recorded(&self, sycl: &Sycl, context: ContextRef) -> Result<(*mut c_void, Option<Recorded>), String> {
        // SAFETY: the caller's promise.
        let native = unsafe { self.context(sycl, context)? };
        // SAFETY: the devices are those of the context.
        let devices = unsafe { sycl.devices_of(context, |device| self.device(sycl, device))? };
        // SAFETY: both live as long as libsycl's.
        let recorded = devices.first().and_then(|device| unsafe { Recorded::around(native, *device) });
        Ok((native, recorded))
    }

    /// # Safety
    ///
    /// The context must be one of this libsycl.
    pub(crate) unsafe fn get(
        &self,
        sycl: &Sycl,
        pointer: *mut c_void,
        context: ContextRef,
    ) -> Result<HandleData, String> {
        // SAFETY: the caller's promise.
        let got = match unsafe { self.recorded(sycl, context)? } {
            (_, Some(recorded)) => recorded.get(pointer),
            // SAFETY: the driver's context lives as long as libsycl's.
            (native, None) => unsafe { without_adapter::get(native, pointer) },
        };
        got.map(|(data, size)| HandleData { data, size }).map_err(|result| match result {
            UrResult::INVALID_ARGUMENT => "the pointer is not in USM memory of this context".to_owned(),
            other => other.text_of(api::Function::urIPCGetMemHandleExp),
        })
    }

    /// # Safety
    ///
    /// The context must be the one of the get.
    pub(crate) unsafe fn put(&self, sycl: &Sycl, handle: HandleData, context: ContextRef) -> Result<(), String> {
        let put = match Recorded::take(handle.data) {
            Some(recorded) => recorded.put(handle.data),
            // SAFETY: the caller's promise.
            None => unsafe { without_adapter::put(self.context(sycl, context)?, handle.data) },
        };
        put.map_err(|result| result.text_of(api::Function::urIPCPutMemHandleExp))
    }

    /// # Safety
    ///
    /// The context and the device must be of this libsycl.
    pub(crate) unsafe fn open(
        &self,
        sycl: &Sycl,
        data: &[u8],
        context: ContextRef,
        device: DeviceRef,
    ) -> Result<*mut c_void, String> {
        // SAFETY: the caller's promise.
        let (context, device) = unsafe { (self.context(sycl, context)?, self.device(sycl, device)?) };
        // SAFETY: both live as long as libsycl's.
        let opened = match unsafe { Recorded::around(context, device) } {
            Some(recorded) => recorded.open(data),
            // SAFETY: as above.
            None => unsafe { without_adapter::open(context, device, data) },
        };
        opened.map_err(|result| match result {
            UrResult::INVALID_VALUE => {
                "the bytes are not those of a handle that is valid here: they are damaged, were put, come from another kind of \
                 runtime, or their producer has ended"
                    .to_owned()
            }
            UrResult::INVALID_ARGUMENT => {
                "the kernel does not let this process take a descriptor from the producer".to_owned()
            }
            other => other.text_of(api::Function::urIPCOpenMemHandleExp),
        })
    }

    /// # Safety
    ///
    /// The context must be one of this libsycl.
    pub(crate) unsafe fn close(&self, sycl: &Sycl, pointer: *mut c_void, context: ContextRef) -> Result<(), String> {
        let closed = match Recorded::take(pointer) {
            Some(recorded) => recorded.close(pointer),
            // SAFETY: the caller's promise.
            None => unsafe { without_adapter::close(self.context(sycl, context)?, pointer) },
        };
        closed.map_err(|result| result.text_of(api::Function::urIPCCloseMemHandleExp))
    }
}
