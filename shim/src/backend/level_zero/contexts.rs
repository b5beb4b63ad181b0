//! The contexts that the program made, so that one can be found by the driver's handle behind it.
//!
//! Asked by `liburscope_ipc.so`, whose caller has the driver's handles only, where the runtime has no functions to
//! share memory.

use urscope_schema::api::role::Context;

use super::{LevelZero, driver::ZeHandle};
use crate::raw::{args::Arg, fork_reset::ForkReset, hash_map::HashMap, mutex::Mutex};

/// The contexts and the numbers of the adapters that made them, by the driver's handles. The newest one counts: an
/// older one with the same handle has ended unnoticed.
static CONTEXTS: ForkReset<Mutex<HashMap<ZeHandle, (usize, usize)>>> = ForkReset::new(Mutex::default);

/// In a forked child, where the runtime is not used.
pub(crate) fn after_fork_in_child() {
    CONTEXTS.reset(Mutex::default());
}

/// An adapter made a context.
pub(crate) fn insert(at: LevelZero, context: usize) {
    // SAFETY: the adapter has just made it.
    let handle = unsafe { Arg::new(Context(context)) };
    if let Ok(native) = at.context(handle) {
        CONTEXTS.get().lock().insert(native, (context, at.via));
    }
}

/// The adapter's context around one of the driver's is about to end.
pub(crate) fn remove(native: ZeHandle) {
    CONTEXTS.get().lock().remove(&native);
}

/// The context around one of the driver's, and its device around one of the driver's. Both are alive as long as the
/// driver's are.
pub(crate) fn find(native: ZeHandle, device: ZeHandle) -> Option<(usize, usize)> {
    let (context, via) = CONTEXTS.get().lock().get(&native).copied()?;
    let at = LevelZero::new(via);
    // SAFETY: an adapter made it around the driver's context, which is alive, so it has not ended.
    let handle = unsafe { Arg::new(Context(context)) };
    let devices = at.native().ok()?.devices(handle).ok()?;
    let device = devices.into_iter().find(|candidate| at.device(*candidate) == Ok(device))?;
    Some((context, device.get().0))
}
