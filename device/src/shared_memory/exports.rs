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
    /// The inode of its file.
    inode: u64,
    /// The process that exported it. A forked child has a copy of the entry.
    process: u32,
    handles: u64,
}

impl Export {
    /// Whether it is this process's, and the one of a handle.
    fn is_of(&self, data: &HandleData) -> bool {
        self.process == process::id() && self.inode == data.inode
    }
}

/// Counts one more handle of a range, and returns it. From now on other processes can open it. `OUT_OF_HOST_MEMORY` if
/// its record cannot be mapped. `names_producer`: others may open it without its descriptor.
pub(crate) fn get(span: &Span, description: Description, names_producer: bool) -> Outcome<[u8; 64]> {
    let mut exports = EXPORTS.lock();
    if let Some(export) = exports.get_mut(&span.identity) {
        export.handles += 1;
    } else {
        let record = span.export_record()?;
        if span.has_own_file() {
            span.describe(description)?;
        }
        record.publish(span.identity);
        let export = Export { record, inode: span.inode, process: process::id(), handles: 1 };
        exports.insert(span.identity, export);
    }
    drop(exports);
    Ok(HandleData::new(span, description, names_producer).encode())
}

/// Puts a handle of this process if `accepts` is true for its kind. Anything else is ignored: bytes that are not a
/// handle, handles of other processes, and handles that were put already.
pub(crate) fn put(bytes: &[u8; 64], accepts: impl FnOnce(u16) -> bool) {
    let Some(data) = HandleData::decode(bytes).filter(|data| accepts(data.kind)) else { return };
    let mut exports = EXPORTS.lock();
    if let Some(export) = exports.get_mut(&data.identity).filter(|export| export.is_of(&data)) {
        export.handles -= 1;
        if export.handles == 0 {
            export.record.withdraw();
            exports.remove(&data.identity);
        }
    }
}

/// Whether this is a handle of this process, whose range has a handle that is not put.
pub(crate) fn is_exported(data: &HandleData) -> bool {
    EXPORTS.lock().get(&data.identity).is_some_and(|export| export.is_of(data))
}

/// Ends all handles of a range, because its memory was freed.
pub(crate) fn revoke(identity: u64) {
    if let Some(export) = EXPORTS.lock().remove(&identity) {
        export.record.withdraw();
    }
}
