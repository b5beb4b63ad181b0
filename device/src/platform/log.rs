//! What the device says on stderr: a bad variable always, anything else only when `ZE_SOFT_LOG=1`.
//!
//! Must never write to stdout, which belongs to the application, and never fail.

use std::collections::BTreeSet;
use std::io::Write;

use parking_lot::Mutex;

use crate::ffi::result::ZeResult;
use crate::platform::settings;

static REPORTED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Says `line` whatever the settings are.
pub(crate) fn warn(line: &str) {
    // One write, so that the lines of several processes do not mix. Nothing can be done if stderr is closed.
    let _ = std::io::stderr().write_all(format!("ze_soft: {line}\n").as_bytes());
}

/// Says `line` when `ZE_SOFT_LOG=1`.
pub(crate) fn note(line: &str) {
    if settings::get().log {
        warn(line);
    }
}

/// What a function that is not implemented answers. Its name is said once when `ZE_SOFT_LOG=1`.
pub(crate) fn unsupported(name: &'static str) -> ZeResult {
    // A forked child must not take the lock: another thread may have held it at the fork.
    if !crate::platform::process::is_forked_child() && settings::get().log && REPORTED.lock().insert(name) {
        warn(&format!("{name} is not implemented: ZE_RESULT_ERROR_UNSUPPORTED_FEATURE"));
    }
    ZeResult::UNSUPPORTED_FEATURE
}
