//! Fences: the host waits on a fence until a queue has executed its lists.
//!
//! A fence is a flag that the queue signals after the last command. Nothing else may ever signal it.

use std::sync::Arc;

use crate::commands::queue::CommandQueue;
use crate::events::signal::{Kind, Signal};
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{ZeResult, call, call_teardown};
use crate::ffi::{In, Out, layout::FenceDesc};

/// `ZE_FENCE_FLAG_SIGNALED`.
const SIGNALED: u32 = 1;

/// The object of a `ze_fence_handle_t`.
pub struct Fence {
    pub(crate) signal: Arc<Signal>,
}

object!(Fence);

/// `zeFenceCreate` (ze_api.h).
pub extern "C" fn create(queue: Handle<CommandQueue>, desc: In<FenceDesc>, fence: Out<Handle<Fence>>) -> ZeResult {
    call(|| {
        queue.get()?;
        let desc = desc.read()?;
        fence.check()?;
        let signal = Arc::new(Signal::new(Kind::Flag));
        if desc.flags & SIGNALED != 0 {
            signal.signal_now();
        }
        fence.write(Handle::register(Arc::new(Fence { signal })))
    })
}

/// `zeFenceDestroy` (ze_api.h). Waits for the fence end.
pub extern "C" fn destroy(fence: Handle<Fence>) -> ZeResult {
    call_teardown(|| {
        fence.retire()?.signal.abandon();
        Ok(())
    })
}

/// `zeFenceHostSynchronize` (ze_api.h). `timeout` is in nanoseconds; `NOT_READY` when it expires.
pub extern "C" fn host_synchronize(fence: Handle<Fence>, timeout: u64) -> ZeResult {
    call(|| {
        let fence = fence.get()?;
        fence.signal.synchronize(timeout)
    })
}

/// `zeFenceQueryStatus` (ze_api.h). `NOT_READY` unless the fence is signalled.
pub extern "C" fn query_status(fence: Handle<Fence>) -> ZeResult {
    call(|| if fence.get()?.signal.is_signalled() { Ok(()) } else { Err(ZeResult::NOT_READY) })
}

/// `zeFenceReset` (ze_api.h).
pub extern "C" fn reset(fence: Handle<Fence>) -> ZeResult {
    call(|| {
        fence.get()?.signal.reset();
        Ok(())
    })
}
