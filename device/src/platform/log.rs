//! Messages on stderr: an invalid environment variable always, anything else only with `ZE_SOFT_LOG=1`.
//!
//! Must never write to stdout, which belongs to the application, and never fail.

use std::{cell::RefCell, collections::BTreeSet, io::Write};

use parking_lot::Mutex;

use super::{process, settings};

thread_local! {
    /// A result that this thread is about to return, and why.
    static REASON: RefCell<Option<(u32, String)>> = const { RefCell::new(None) };
}

/// Names that [`note_once`] has reported.
static REPORTED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Writes `line`, whatever the settings are.
pub(crate) fn warn(line: &str) {
    // One write, so that lines of several processes do not mix. A closed stderr is ignored.
    let _ = std::io::stderr().write_all(format!("ze_soft: {line}\n").as_bytes());
}

/// Writes `line` with `ZE_SOFT_LOG=1`.
pub fn note(line: &str) {
    if settings::get().log {
        warn(line);
    }
}

/// Writes `name` and `line` with `ZE_SOFT_LOG=1`, the first time for each name. Writes nothing in a forked child.
pub(crate) fn note_once(name: &'static str, line: &str) {
    // A forked child must not take the lock: another thread may have held it at the fork.
    if !process::is_forked_child() && settings::get().log && REPORTED.lock().insert(name) {
        warn(&format!("{name} {line}"));
    }
}

/// Keeps why a call of this thread is about to return `code`, with `ZE_SOFT_LOG=1`: its entry point says so. The last
/// reason counts.
#[cold]
pub(crate) fn keep_reason<S: Into<String>>(code: u32, reason: impl FnOnce() -> S) {
    if settings::get().log {
        // A destructor of the thread keeps none.
        let _ = REASON.try_with(|kept| kept.replace(Some((code, reason().into()))));
    }
}

/// The reason that was kept last, with the code that it is for. None is kept from now on.
pub fn take_reason() -> Option<(u32, String)> {
    REASON.try_with(RefCell::take).ok().flatten()
}
