//! The file behind a data handle, as a consumer gets at it.
//!
//! By the descriptor in the handle if that is the right file in this process already (libumf and the Unified Runtime
//! have fetched it; or the producer opens its own handle), else by fetching it from the producer. Must never close a
//! descriptor that came in a handle, and never touch a file that is not a segment of ours.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use super::PAGE;
use super::handle_data::HandleData;
use super::segment;

/// The segment that a handle names, as this process gets at it.
pub(crate) enum SegmentFile {
    /// The descriptor in the handle is it. It stays its owner's: never closed here.
    Here(ManuallyDrop<File>),
    /// Fetched from the producer; closed on drop.
    Fetched(File),
}

impl SegmentFile {
    /// Finds the file, or says why it cannot be had.
    pub(crate) fn of(data: &HandleData) -> Result<Self, String> {
        if let Some(file) = borrow(data.descriptor).filter(|file| is_segment(file, data.inode)) {
            return Ok(Self::Here(file));
        }
        let file = fetch(data).map_err(|why| format!("cannot fetch it from process {}: {why}", data.pid))?;
        if is_segment(&file, data.inode) {
            Ok(Self::Fetched(file))
        } else {
            Err(format!("descriptor {} of process {} is another file by now", data.exported, data.pid))
        }
    }

    fn as_file(&self) -> &File {
        match self {
            Self::Here(file) => file,
            Self::Fetched(file) => file,
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_file().as_fd()
    }

    /// Whether the file is large enough for what the handle says.
    pub(crate) fn holds(&self, data: &HandleData, length: u64) -> bool {
        let aligned =
            data.size > 0 && data.offset.is_multiple_of(PAGE as u64) && data.offset > u64::from(data.record) * 8;
        let end = data.offset.checked_add(length);
        aligned && end.is_some_and(|end| self.as_file().metadata().is_ok_and(|data| end <= data.size()))
    }
}

/// Looks at a descriptor of this process without owning it.
fn borrow(descriptor: i32) -> Option<ManuallyDrop<File>> {
    // SAFETY: F_GETFD only asks whether the number is a descriptor.
    let known = descriptor >= 0 && unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
    // SAFETY: the number is an open descriptor; ManuallyDrop sees to it that it is not closed by us.
    known.then(|| ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// Whether a file is the segment with this inode. Segments are told from ordinary files that happen to have the same
/// inode number.
fn is_segment(file: &File, inode: u64) -> bool {
    segment::is_ours(file) && file.metadata().is_ok_and(|data| data.ino() == inode)
}

/// Fetches the producer's descriptor (pidfd_open(2), pidfd_getfd(2)).
fn fetch(data: &HandleData) -> io::Result<File> {
    // SAFETY: pidfd_open takes plain numbers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, data.pid as libc::c_long, 0) };
    let process = own(process)?;
    // Asked after the process is pinned: if it started when the producer did, it is the producer.
    if crate::platform::process::start_time(data.pid) != Some(data.started) {
        return Err(io::Error::other("the producer is gone and its pid belongs to another process"));
    }
    let exported = libc::c_long::from(data.exported);
    // SAFETY: pidfd_getfd takes plain numbers.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), exported, 0) }).map(File::from)
}

/// Owns what a system call that makes a descriptor answered.
fn own(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}
