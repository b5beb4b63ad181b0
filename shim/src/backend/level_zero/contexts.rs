//! The contexts that the program made, by the driver's handles.
//!
//! For `liburscope_ipc.so`, whose caller has only the driver's handles, if the runtime has no functions to share
//! memory.

use urscope_schema::api::role::Context;

use super::{LevelZero, driver::ZeHandle};
use crate::raw::{args::Arg, fork_reset::ForkReset, hash_map::HashMap, mutex::Mutex};

/// The contexts and the numbers of their adapters, by the driver's handles. A newer context replaces one with the
/// same handle, which has ended unnoticed.
static CONTEXTS: ForkReset<Mutex<HashMap<ZeHandle, (usize, usize)>>> = ForkReset::new(Mutex::default);

/// Forgets the parent's contexts.
pub(crate) fn after_fork_in_child() {
    CONTEXTS.reset(Mutex::default());
}

/// Adds a context that an adapter has made.
pub(crate) fn insert(at: LevelZero, context: usize) {
    // SAFETY: the adapter has just made it.
    let handle = unsafe { Arg::new(Context(context)) };
    if let Ok(native) = at.context(handle) {
        CONTEXTS.get().lock().insert(native, (context, at.via));
    }
}

/// Removes the context with the driver's handle, which is about to end.
pub(crate) fn remove(native: ZeHandle) {
    CONTEXTS.get().lock().remove(&native);
}

/// The adapter's context and device that wrap the driver's. They live as long as the driver's.
pub(crate) fn find(native: ZeHandle, device: ZeHandle) -> Option<(usize, usize)> {
    let (context, via) = CONTEXTS.get().lock().get(&native).copied()?;
    let at = LevelZero::new(via);
    // SAFETY: an adapter made it for the driver's context, which is alive, so it has not ended.
    let handle = unsafe { Arg::new(Context(context)) };
    let devices = at.native().ok()?.devices(handle).ok()?;
    let device = devices.into_iter().find(|candidate| at.device(*candidate) == Ok(device))?;
    Some((context, device.get().0))
}
