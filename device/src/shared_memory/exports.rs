//! Which allocations have IPC handles issued, and how many.
//!
//! While an allocation has a handle issued, its slot says so and the handle can be opened. The last put, or the end of the
//! memory, takes that back: whoever comes later is refused, as with a driver that closes its descriptor. Must never
//! keep an allocation alive.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::segment::{ExportRecord, Span};

static ISSUED: Mutex<BTreeMap<u64, Export>> = Mutex::new(BTreeMap::new());

struct Export {
    record: ExportRecord,
    handles: u64,
}

/// A handle was taken: from now on it can be opened.
pub(crate) fn get(span: &Span) {
    let mut issued = ISSUED.lock();
    let export = issued.entry(span.identity()).or_insert_with(|| Export { record: span.export_record(), handles: 0 });
    export.handles += 1;
    export.record.publish(span.identity());
}

/// A handle of this process was put. One that is not known changes nothing.
pub(crate) fn put(identity: u64) {
    let mut issued = ISSUED.lock();
    if let Some(export) = issued.get_mut(&identity) {
        export.handles -= 1;
        if export.handles == 0 {
            export.record.withdraw();
            issued.remove(&identity);
        }
    }
}

/// Whether a handle is issued.
pub(crate) fn is_exported(identity: u64) -> bool {
    ISSUED.lock().contains_key(&identity)
}

/// The memory was freed, and with it all its handles.
pub(crate) fn revoke(identity: u64) {
    if let Some(export) = ISSUED.lock().remove(&identity) {
        export.record.withdraw();
    }
}
