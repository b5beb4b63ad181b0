//! The contexts that the program made, so that one can be found by the driver's handle behind it.
//!
//! Asked by `liburscope_ipc.so`, whose caller has the driver's handles only, where the runtime has no functions to share memory.

use std::collections::HashMap;

use parking_lot::Mutex;
use urscope_schema::api::role::Context;

use super::{LevelZero, driver::ZeHandle};
use crate::raw::{args::Arg, fork_reset::ForkReset};

/// The contexts by their handle, and the number of the adapter that made each.
static MADE: ForkReset<Mutex<HashMap<usize, usize>>> = ForkReset::new(Mutex::default);

/// In a forked child, where the runtime is not used.
pub(crate) fn after_fork_in_child() {
    MADE.reset(Mutex::default());
}

/// An adapter made a context.
pub(crate) fn made(at: LevelZero, context: usize) {
    MADE.get().lock().insert(context, at.via);
}

/// A context is about to end.
pub(crate) fn ends(context: Arg<Context>) {
    MADE.get().lock().remove(&context.get().0);
}

/// The context around one of the driver's, and its device around one of the driver's.
pub(crate) fn find(native: ZeHandle, device: ZeHandle) -> Option<(usize, usize)> {
    let made: Vec<(usize, usize)> = MADE.get().lock().iter().map(|(context, via)| (*context, *via)).collect();
    made.into_iter().find_map(|(context, via)| {
        let at = LevelZero::new(via);
        // SAFETY: an adapter made it, and it has not ended.
        let handle = unsafe { Arg::new(Context(context)) };
        if at.context(handle) != Ok(native) {
            return None;
        }
        let devices = at.native().ok()?.devices(handle).ok()?;
        let device = devices.into_iter().find(|candidate| at.device(*candidate) == Ok(device))?;
        Some((context, device.get().0))
    })
}
