//! Which allocations have IPC handles out, and how many.
//!
//! While an allocation has a handle out, its slot says so and the handle can be opened. The last put, or the end of the
//! memory, takes that back: whoever comes later is refused, as with a driver that closes its descriptor. Must never
//! keep an allocation alive.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::segment::{Door, Span};

static OUT: Mutex<BTreeMap<u64, Export>> = Mutex::new(BTreeMap::new());

struct Export {
    door: Door,
    handles: u64,
}

/// A handle was taken: from now on it can be opened.
pub(crate) fn get(span: &Span) {
    let mut out = OUT.lock();
    let export = out.entry(span.identity()).or_insert_with(|| Export { door: span.door(), handles: 0 });
    export.handles += 1;
    export.door.open(span.identity());
}

/// A handle of this process was put. One that is not known changes nothing.
pub(crate) fn put(identity: u64) {
    let mut out = OUT.lock();
    if let Some(export) = out.get_mut(&identity) {
        export.handles -= 1;
        if export.handles == 0 {
            export.door.close();
            out.remove(&identity);
        }
    }
}

/// Whether a handle is out.
pub(crate) fn is_out(identity: u64) -> bool {
    OUT.lock().contains_key(&identity)
}

/// The memory was freed, and with it all its handles.
pub(crate) fn end(identity: u64) {
    if let Some(export) = OUT.lock().remove(&identity) {
        export.door.close();
    }
}
