//! Messages on stderr: an invalid environment variable always, anything else only with `ZE_SOFT_LOG=1`.
//!
//! Must never write to stdout, which belongs to the application, and never fail.

use std::{collections::BTreeSet, io::Write};

use parking_lot::Mutex;

use super::{process, settings};

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
