//! Fences: what the host waits for after a queue has executed lists.
//!
//! A fence is a flag that the queue signals after the last command. Must never be signalled by anything else.

use std::sync::Arc;

use crate::commands::queue::CommandQueue;
use crate::events::signal::{Kind, Signal, Timestamps, WaitResult};
use crate::ffi::handles::{Handle, Object, Registry};
use crate::ffi::layout::command::FenceDesc;
use crate::ffi::result::{ZeResult, call, call_teardown};
use crate::ffi::{In, Out};
use crate::platform::clock;

/// `ZE_FENCE_FLAG_SIGNALED`.
const SIGNALED: u32 = 1;

/// A fence.
pub struct Fence {
    /// What is waited for.
    pub(crate) signal: Arc<Signal>,
}

impl Object for Fence {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<Fence> = Registry::new();
        &LIVE
    }
}

/// `zeFenceCreate` (ze_api.h).
pub extern "C" fn create(queue: Handle<CommandQueue>, desc: In<FenceDesc>, fence: Out<Handle<Fence>>) -> ZeResult {
    call(|| {
        queue.get()?;
        let desc = desc.read()?;
        fence.check()?;
        let signal = Arc::new(Signal::new(Kind::Flag));
        if desc.flags & SIGNALED != 0 {
            let now = clock::now();
            signal.complete(signal.submit(), Timestamps { start: now, end: now });
        }
        fence.write(Handle::register(Arc::new(Fence { signal })))
    })
}

/// `zeFenceDestroy` (ze_api.h).
pub extern "C" fn destroy(fence: Handle<Fence>) -> ZeResult {
    call_teardown(|| {
        fence.retire()?.signal.abandon();
        Ok(())
    })
}

/// `zeFenceHostSynchronize` (ze_api.h): `timeout` in nanoseconds.
pub extern "C" fn host_synchronize(fence: Handle<Fence>, timeout: u64) -> ZeResult {
    call(|| {
        let fence = fence.get()?;
        match fence.signal.wait(fence.signal.wait_value(), clock::deadline(timeout)) {
            WaitResult::Completed | WaitResult::Abandoned => Ok(()),
            WaitResult::TimedOut => Err(ZeResult::NOT_READY),
        }
    })
}

/// `zeFenceQueryStatus` (ze_api.h).
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
