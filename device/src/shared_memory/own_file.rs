//! A file that holds one range and nothing else: the memory begins at offset 0, and the last page describes it.
//!
//! Middleware takes the descriptor in an IPC handle for that of a dma-buf: it maps the file itself,
//! from offset 0, and it makes handles that contain nothing but the descriptor. Both work with such a
//! file. Any process that has the descriptor can write to the description, so a reader checks it
//! against the file: a wrong description shows other parts of the same file, never other memory. The
//! description is written with the first export. Must never be opened by a descriptor before that.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs::File, os::fd::AsFd, sync::OnceLock};

use super::memory_file::{self, is_memory_file};
use super::{PAGE, mapping::Mapping, record::Records};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::descriptor;

/// Marks the description.
const MAGIC: u64 = u64::from_le_bytes(*b"zsrange2");
/// The words of a description: the mark, the length of the range, the requested size, the kind, the device.
const WORDS: usize = 5;
/// The most files of this kind in a process: a mapping cannot be merged with its neighbour if that is another file, and
/// the kernel limits mappings, too (vm.max_map_count, usually 65530).
const MAX_FILES: u64 = 4096;

/// How many of these files this process has.
static FILES: AtomicU64 = AtomicU64::new(0);

/// The description of a file. A range may be longer than the memory in it: it consists of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// The kind of memory, as in the IPC handle.
    pub kind: u16,
    /// The number of the device that it is on, or [`NO_DEVICE`].
    pub device: u8,
    /// The size that was requested, in bytes.
    pub size: u64,
}

/// In place of a device's number: the range is memory of the host, or of events.
pub(crate) const NO_DEVICE: u8 = u8::MAX;

/// A file with one range, of this process.
pub(super) struct OwnFile {
    pub file: File,
    /// Bytes of the range, whole pages.
    length: u64,
    /// The last page, once the range was exported.
    last_page: OnceLock<Records>,
}

impl OwnFile {
    /// A file for a range of `length` bytes, whole pages, and its inode: `OUT_OF_HOST_MEMORY` if the kernel refuses.
    pub(super) fn new(length: u64) -> Outcome<(Self, u64)> {
        let size = length.checked_add(PAGE as u64).ok_or(ZeResult::OUT_OF_HOST_MEMORY)?;
        let file = memory_file::create(size)?;
        let inode = file.metadata().map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?.ino();
        FILES.fetch_add(1, Ordering::Relaxed);
        Ok((Self { file, length, last_page: OnceLock::new() }, inode))
    }

    /// Whether this process should have one more of these files: while they take less than half of the descriptors
    /// that it may have.
    pub(super) fn is_affordable() -> bool {
        FILES.load(Ordering::Relaxed) < MAX_FILES.min(descriptor::limit() / 2)
    }

    /// The last page, which holds the record of the range: `OUT_OF_HOST_MEMORY` if it cannot be mapped.
    pub(super) fn records(&self) -> Outcome<&Records> {
        if self.last_page.get().is_none() {
            let page = Mapping::shared(self.file.as_fd(), self.length, PAGE, PAGE)?;
            // If another thread was faster, this mapping is dropped.
            let _ = self.last_page.set(page.into());
        }
        self.last_page.get().ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Describes the range, so that the descriptor alone is enough to open it.
    pub(super) fn describe(&self, description: Description) -> Outcome {
        let Description { kind, device, size } = description;
        let words = [MAGIC, self.length, size, kind.into(), device.into()];
        let bytes = words.map(u64::to_le_bytes);
        self.file.write_all_at(bytes.as_flattened(), self.length).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The size in bytes of the exported memory behind a descriptor of this process, in whole pages: `None` for any other.
pub fn exported_size(number: i32) -> Option<usize> {
    descriptor::borrow(number).and_then(|file| description(&file)).map(|(_, length)| length as usize)
}

/// The description in a file that holds one range, and the length of that range in bytes. `None` for any other file,
/// also for one of the device with many ranges, and for a description that does not fit the file.
pub(crate) fn description(file: &File) -> Option<(Description, u64)> {
    if !is_memory_file(file) {
        return None;
    }
    let length = file.metadata().ok()?.len().checked_sub(PAGE as u64)?;
    let mut bytes = [[0; 8]; WORDS];
    file.read_exact_at(bytes.as_flattened_mut(), length).ok()?;
    let [magic, described, size, kind, device] = bytes.map(u64::from_le_bytes);
    let fits = described == length && length.is_multiple_of(PAGE as u64);
    let full = size > 0 && size.checked_next_multiple_of(PAGE as u64) == Some(length);
    let kind = u16::try_from(kind).ok()?;
    let device = u8::try_from(device).ok()?;
    (magic == MAGIC && fits && full).then_some((Description { kind, device, size }, length))
}
