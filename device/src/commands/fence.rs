//! Fences: what the host waits for after a queue has executed lists.
//!
//! A fence is a flag that the queue signals after the last command. Must never be signalled by anything else.

use std::sync::Arc;

use crate::commands::queue::CommandQueue;
use crate::events::signal::{Kind, Outcome, Signal, Stamps};
use crate::ffi::handles::{Handle, Object, Registry};
use crate::ffi::layout::command::FenceDesc;
use crate::ffi::result::{ZeResult, answer, answer_end};
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
    answer(|| {
        queue.get()?;
        let desc = desc.read()?;
        fence.check()?;
        let signal = Arc::new(Signal::new(Kind::Flag));
        if desc.flags & SIGNALED != 0 {
            let now = clock::now();
            signal.reach(signal.promise(), Stamps { start: now, end: now });
        }
        fence.write(Handle::register(Arc::new(Fence { signal })))
    })
}

/// `zeFenceDestroy` (ze_api.h).
pub extern "C" fn destroy(fence: Handle<Fence>) -> ZeResult {
    answer_end(|| {
        fence.retire()?.signal.abandon();
        Ok(())
    })
}

/// `zeFenceHostSynchronize` (ze_api.h): `timeout` in nanoseconds.
pub extern "C" fn host_synchronize(fence: Handle<Fence>, timeout: u64) -> ZeResult {
    answer(|| {
        let fence = fence.get()?;
        match fence.signal.wait(fence.signal.expected(), clock::deadline(timeout)) {
            Outcome::Reached | Outcome::Abandoned => Ok(()),
            Outcome::TimedOut => Err(ZeResult::NOT_READY),
        }
    })
}

/// `zeFenceQueryStatus` (ze_api.h).
pub extern "C" fn query_status(fence: Handle<Fence>) -> ZeResult {
    answer(|| if fence.get()?.signal.is_reached() { Ok(()) } else { Err(ZeResult::NOT_READY) })
}

/// `zeFenceReset` (ze_api.h).
pub extern "C" fn reset(fence: Handle<Fence>) -> ZeResult {
    answer(|| {
        fence.get()?.signal.reset();
        Ok(())
    })
}
