//! Opening a handle: finds the file, maps the range, and counts this process in its record.
//!
//! The descriptor in the handle is one of this process if a program has stored it there, or if the producer opens its
//! own handle. If it is as the producer wrote it, and the handle names the producer, it is fetched from there. If a
//! handle is nothing but a descriptor, the file describes itself (`own_file`): as with a dma-buf, whoever has the
//! descriptor can open the memory, also after the producer has put the handle or freed the memory. Must never close a
//! descriptor that came in a handle, never touch a file that is not one of the device, and leave nothing open or mapped
//! when it fails.

use std::os::{fd::AsFd, unix::fs::MetadataExt};
use std::{fs::File, mem::ManuallyDrop};

use super::handle_data::{HandleData, Producer};
use super::own_file::{Description, description};
use super::record::{OpenRecord, RECORD_SIZE};
use super::{PAGE, mapping::Mapping, memory_file::is_memory_file};
use crate::ffi::result::ZeResult;
use crate::platform::descriptor;

/// A range that is open in this process. Mapped until it is dropped, and counted in its record until then.
pub(crate) struct Import {
    // In this order: the pages must be unmapped before the producer may reuse them.
    pub(crate) mapping: Mapping,
    /// The inode of its file, and where it begins there, in bytes.
    pub(crate) inode: u64,
    pub(crate) offset: u64,
    /// None for a range that was opened by its descriptor alone. Its file is never used for another one.
    _record: Option<OpenRecord>,
}

pub(crate) enum ImportError {
    /// The handle is not, or no longer, valid. In words, for the log.
    Refused(String),
    /// This process cannot map the range.
    Host(ZeResult),
}

impl Import {
    /// Opens the first `length` bytes, whole pages, of the range that a handle describes.
    pub(crate) fn open(data: &HandleData, length: usize) -> Result<Self, ImportError> {
        // The descriptor in the handle is not ours to close.
        let borrowed = borrow(data);
        let fetched;
        let file: &File = if let Some(file) = &borrowed {
            file
        } else {
            fetched = fetch(data).map_err(ImportError::Refused)?;
            &fetched
        };
        let size = file.metadata().map_or(0, |file| file.size());
        if !holds(size, data, length as u64) {
            return Err(ImportError::Refused("its range lies outside the file".into()));
        }
        let file = file.as_fd();
        let record = OpenRecord::open(file, size, u32::from(data.record), data.identity)
            .map_err(|_| ImportError::Refused("its producer has freed it or put the handle".into()))?;
        let mapping = Mapping::guarded(file, data.offset, length, PAGE).map_err(ImportError::Host)?;
        Ok(Self { mapping, inode: data.inode, offset: data.offset, _record: Some(record) })
    }

    /// Opens the range in the file of a descriptor of this process, at a multiple of `alignment` (0: anywhere),
    /// and returns its description.
    pub(crate) fn by_descriptor(number: i32, alignment: usize) -> Result<(Self, Description), ImportError> {
        let refuse = || {
            ImportError::Refused(format!("descriptor {number} is not that of exported memory with a file of its own"))
        };
        let file = descriptor::borrow(number).ok_or_else(refuse)?;
        let (description, length) = description(&file).ok_or_else(refuse)?;
        let mapping = Mapping::guarded(file.as_fd(), 0, length as usize, alignment).map_err(ImportError::Host)?;
        let inode = file.metadata().map_or(0, |file| file.ino());
        Ok((Self { mapping, inode, offset: 0, _record: None }, description))
    }
}

/// The file that a handle names, from its producer, or the reason why it cannot be had.
pub(crate) fn fetch(data: &HandleData) -> Result<File, String> {
    let Some(Producer { pid, descriptor }) = data.unchanged() else {
        return Err(format!("descriptor {} of this process is not that of its file", data.descriptor));
    };
    let file = descriptor::fetch(pid, data.started, descriptor)
        .map_err(|error| format!("its file cannot be fetched from process {pid}: {error}"))?;
    let is_segment = is_segment(&file, data.inode);
    is_segment
        .then_some(file)
        .ok_or_else(|| format!("descriptor {descriptor} of process {pid} now refers to another file"))
}

/// Whether a file of `size` bytes, whole pages, contains the range that a handle describes, and its record after it.
fn holds(size: u64, data: &HandleData, length: u64) -> bool {
    let aligned = data.size > 0 && [data.offset, size].iter().all(|number| number.is_multiple_of(PAGE as u64));
    let end = data.offset.checked_add(length);
    let before_record = size.checked_sub((u64::from(data.record) + 1) * RECORD_SIZE as u64);
    aligned && end.zip(before_record).is_some_and(|(end, record)| end <= record)
}

/// Whether the descriptor in a handle is that of its file, in this process.
pub(crate) fn is_here(data: &HandleData) -> bool {
    borrow(data).is_some()
}

fn borrow(data: &HandleData) -> Option<ManuallyDrop<File>> {
    descriptor::borrow(data.descriptor).filter(|file| is_segment(file, data.inode))
}

/// Whether this is the file of the device with this inode. An ordinary file may happen to have the same inode number.
fn is_segment(file: &File, inode: u64) -> bool {
    is_memory_file(file) && file.metadata().is_ok_and(|data| data.ino() == inode)
}
