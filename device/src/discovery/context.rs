//! Contexts, and the residency calls.
//!
//! A context has no state: all devices share one address space, as with Intel's driver. Must never free what was
//! allocated in a context: the application does.

use std::sync::Arc;

use crate::discovery::device::Device;
use crate::discovery::driver::{self, Driver};
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Address, Argument, In, Out, layout::ContextDesc};
use crate::platform::process;

/// The object of a `ze_context_handle_t`.
pub struct Context {
    // A zero-sized type would give all contexts the same address, and so the same handle.
    _identity: u8,
}

impl Context {
    /// A new context, without a handle.
    pub(crate) fn new() -> Self {
        Self { _identity: 0 }
    }
}

object!(Context);

/// `zeContextCreate` (ze_api.h).
pub extern "C" fn create(driver: Handle<Driver>, desc: In<ContextDesc>, context: Out<Handle<Context>>) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        desc.read()?;
        register(context)
    })
}

/// `zeContextCreateEx` (ze_api.h). The devices are checked; a context always covers all of them.
pub extern "C" fn create_ex(
    driver: Handle<Driver>,
    desc: In<ContextDesc>,
    count: Argument<u32>,
    devices: In<Handle<Device>>,
    context: Out<Handle<Context>>,
) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        desc.read()?;
        devices.objects(count)?;
        register(context)
    })
}

fn register(context: Out<Handle<Context>>) -> Outcome {
    context.check()?;
    process::allow_descriptor_fetch();
    context.write(Handle::register(Arc::new(Context::new())))
}

/// `zeContextDestroy` (ze_api.h).
pub extern "C" fn destroy(context: Handle<Context>) -> ZeResult {
    call_teardown(|| context.retire().map(drop))
}

/// `zeContextGetStatus` (ze_api.h).
pub extern "C" fn get_status(context: Handle<Context>) -> ZeResult {
    call(|| context.get().map(drop))
}

/// `zeContextSystemBarrier` (ze_api.h). Host memory needs no barrier.
pub extern "C" fn system_barrier(context: Handle<Context>, device: Handle<Device>) -> ZeResult {
    call(|| {
        context.get()?;
        device.get().map(drop)
    })
}

/// `zeContextMakeMemoryResident` (ze_api.h). All memory is always resident.
pub extern "C" fn make_memory_resident(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    _size: usize,
) -> ZeResult {
    call(|| check_residency(context, device, pointer))
}

/// `zeContextEvictMemory` (ze_api.h). Nothing is evicted.
pub extern "C" fn evict_memory(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    _size: usize,
) -> ZeResult {
    call_teardown(|| check_residency(context, device, pointer))
}

fn check_residency(context: Handle<Context>, device: Handle<Device>, pointer: Address) -> Outcome {
    context.get()?;
    device.get()?;
    pointer.check()
}
