//! Opening a handle: finds the file, maps the range, and counts this process in its record.
//!
//! The file is behind the descriptor in the handle if libumf or the Unified Runtime has already fetched it into this
//! process, or if the producer opens its own handle. Otherwise it is fetched from the producer. Must never close a
//! descriptor that came in a handle, never touch a file that is not a segment of the device, and leave nothing open or
//! mapped when it fails.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::PAGE;
use super::handle_data::HandleData;
use super::mapping::Mapping;
use super::memory_file::is_memory_file;
use super::record::{OpenRecord, RECORD_SIZE};
use crate::ffi::result::ZeResult;
use crate::platform::descriptor;

/// A range of a segment that is open in this process. Mapped until it is dropped, and counted in its record until then.
pub(crate) struct Import {
    // In this order: the pages must be unmapped before the producer may reuse them.
    mapping: Mapping,
    _record: OpenRecord,
}

/// Why a handle cannot be opened.
pub(crate) enum ImportError {
    /// The handle is not, or no longer, valid. In words, for the log.
    Refused(String),
    /// This process cannot map the range.
    Host(ZeResult),
}

impl Import {
    /// Opens the first `length` bytes, whole pages, of the range that a handle describes.
    pub(crate) fn open(data: &HandleData, length: usize) -> Result<Self, ImportError> {
        let file = SegmentFile::find(data).map_err(ImportError::Refused)?;
        if !file.holds(data, length as u64) {
            return Err(ImportError::Refused("its range lies outside the file".into()));
        }
        let file = file.file().as_fd();
        let record = OpenRecord::open(file, u32::from(data.record), data.identity)
            .map_err(|_| ImportError::Refused("its producer has freed it or put the handle".into()))?;
        let mapping = Mapping::shared(file, data.offset, length, PAGE).map_err(ImportError::Host)?;
        Ok(Self { mapping, _record: record })
    }

    /// Where it is mapped.
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

/// The file of a segment that a handle names.
enum SegmentFile {
    /// Behind the descriptor in the handle, which is not ours to close.
    Borrowed(ManuallyDrop<File>),
    /// Fetched from the producer; closed on drop.
    Fetched(File),
}

impl SegmentFile {
    /// Finds the file, or returns the reason why it cannot be had.
    fn find(data: &HandleData) -> Result<Self, String> {
        if let Some(file) = descriptor::borrow(data.descriptor).filter(|file| is_segment(file, data.inode)) {
            return Ok(Self::Borrowed(file));
        }
        let file = descriptor::fetch(data.pid, data.started, data.exported)
            .map_err(|error| format!("its file cannot be fetched from process {}: {error}", data.pid))?;
        if is_segment(&file, data.inode) {
            Ok(Self::Fetched(file))
        } else {
            Err(format!("descriptor {} of process {} now refers to another file", data.exported, data.pid))
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Borrowed(file) => file,
            Self::Fetched(file) => file,
        }
    }

    /// Whether the file contains the range and the record that the handle describes.
    fn holds(&self, data: &HandleData, length: u64) -> bool {
        let after_record = data.offset > u64::from(data.record) * RECORD_SIZE as u64;
        let aligned = data.size > 0 && data.offset.is_multiple_of(PAGE as u64);
        let end = data.offset.checked_add(length);
        aligned && after_record && end.is_some_and(|end| self.file().metadata().is_ok_and(|file| end <= file.size()))
    }
}

/// Whether a file is the segment with this inode. An ordinary file may happen to have the same inode number.
fn is_segment(file: &File, inode: u64) -> bool {
    is_memory_file(file) && file.metadata().is_ok_and(|data| data.ino() == inode)
}
