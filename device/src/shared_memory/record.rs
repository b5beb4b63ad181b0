//! The record of a range: a word in the file itself, which every process that has the file sees. Records are counted
//! from the end of the file, so that a process which opens a range need not know how many there are.
//!
//! The high bits hold the identity of the range while the range has an IPC handle, the low bits count
//! the mappings in other processes. A consumer opens a range by raising the count if the identity is
//! still the one in its handle. So a handle whose memory was freed is refused, and a freed range is not
//! reused while another process has it open. A consumer that is killed leaves its count behind: the
//! range is then kept until its segment is released. Must never be written other than atomically.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{os::fd::BorrowedFd, sync::Arc};

use super::{PAGE, mapping::Mapping};
use crate::ffi::result::{Outcome, ZeResult};

/// Bytes of a record.
pub(crate) const RECORD_SIZE: usize = size_of::<AtomicU64>();
/// The low bits of a record: the number of open mappings.
const COUNT_BITS: u32 = 24;
/// The bits of an identity.
pub(crate) const IDENTITY_MASK: u64 = u64::MAX >> COUNT_BITS;

/// Whole pages with records: the end of a file.
pub(crate) type Records = Arc<Mapping>;

/// The record of a range of this process.
pub(crate) struct ExportRecord {
    records: Records,
    index: u32,
}

impl ExportRecord {
    pub(crate) fn new(records: &Records, index: u32) -> Self {
        Self { records: Arc::clone(records), index }
    }

    /// Lets other processes open the range with a handle of this identity.
    pub(crate) fn publish(&self, identity: u64) {
        if let Some(word) = word(&self.records, self.index) {
            word.fetch_or(identity << COUNT_BITS, Ordering::AcqRel);
        }
    }

    /// Refuses further opens. Mappings that exist stay counted.
    pub(crate) fn withdraw(&self) {
        if let Some(word) = word(&self.records, self.index) {
            word.fetch_and((1 << COUNT_BITS) - 1, Ordering::AcqRel);
        }
    }
}

/// Whether a record holds neither an identity nor open mappings.
pub(crate) fn is_unused(records: &Mapping, index: u32) -> bool {
    word(records, index).is_none_or(|word| word.load(Ordering::Acquire) == 0)
}

/// A record in a file of another process (or of this one), which counts this process until it is dropped.
pub(crate) struct OpenRecord {
    page: Mapping,
    index: u32,
}

impl OpenRecord {
    /// Counts this process in record `record` of `file`, which has `size` bytes, whole pages: `INVALID_ARGUMENT` if the
    /// record does not hold `identity`.
    pub(super) fn open(file: BorrowedFd<'_>, size: u64, record: u32, identity: u64) -> Outcome<Self> {
        let per_page = (PAGE / RECORD_SIZE) as u32;
        let pages_from_end = u64::from(record / per_page) + 1;
        let start = size.checked_sub(pages_from_end * PAGE as u64).ok_or(ZeResult::INVALID_ARGUMENT)?;
        let page = Mapping::shared(file, start, PAGE, PAGE)?;
        let index = record % per_page;
        let raise = |word: u64| (word >> COUNT_BITS == identity).then(|| word + 1);
        word(&page, index)
            .and_then(|word| word.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise).ok())
            .ok_or(ZeResult::INVALID_ARGUMENT)?;
        Ok(Self { page, index })
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if let Some(word) = word(&self.page, self.index) {
            word.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn word(records: &Mapping, index: u32) -> Option<&AtomicU64> {
    let last = (records.length() / RECORD_SIZE).checked_sub(1)?;
    records.get(last.checked_sub(index as usize)?)
}
