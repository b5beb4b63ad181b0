//! The ranges of this process whose IPC handles are not all put, and the number of these handles.
//!
//! While a range has such a handle, its record is published and the handle can be opened. The last put,
//! or the end of the memory, withdraws the record: later opens are refused, as with a driver that closes its
//! descriptor. Must never keep a range alive.

use std::{collections::BTreeMap, process};

use parking_lot::Mutex;

use super::{handle_data::HandleData, own_file::Description, record::ExportRecord, segment::Span};
use crate::ffi::result::Outcome;

/// The exported ranges, by identity.
static EXPORTS: Mutex<BTreeMap<u64, Export>> = Mutex::new(BTreeMap::new());

struct Export {
    record: ExportRecord,
    handles: u64,
}

/// Counts one more handle of a range, and returns it. From now on other processes can open it. `OUT_OF_HOST_MEMORY` if
/// its record cannot be mapped.
pub(crate) fn get(span: &Span, description: Description) -> Outcome<[u8; 64]> {
    let mut exports = EXPORTS.lock();
    if let Some(export) = exports.get_mut(&span.identity) {
        export.handles += 1;
    } else {
        let record = span.export_record()?;
        if span.has_own_file() {
            span.describe(description)?;
        }
        record.publish(span.identity);
        exports.insert(span.identity, Export { record, handles: 1 });
    }
    drop(exports);
    Ok(HandleData::of(span, description).encode())
}

/// Puts a handle of this process if `accepts` is true for its kind. Anything else is ignored: bytes that are not a
/// handle, handles of other processes, and handles that were put already.
pub(crate) fn put(bytes: &[u8; 64], accepts: impl FnOnce(u16) -> bool) {
    let own = |data: &HandleData| data.pid == process::id() && accepts(data.kind);
    let Some(data) = HandleData::decode(bytes).filter(own) else { return };
    let mut exports = EXPORTS.lock();
    if let Some(export) = exports.get_mut(&data.identity) {
        export.handles -= 1;
        if export.handles == 0 {
            export.record.withdraw();
            exports.remove(&data.identity);
        }
    }
}

/// Whether this range has a handle that is not put.
pub(crate) fn is_exported(identity: u64) -> bool {
    EXPORTS.lock().contains_key(&identity)
}

/// Ends all handles of a range, because its memory was freed.
pub(crate) fn revoke(identity: u64) {
    if let Some(export) = EXPORTS.lock().remove(&identity) {
        export.record.withdraw();
    }
}
