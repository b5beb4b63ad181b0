//! A shared-memory file (memfd) whose size can no longer change.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::descriptor;

/// The seals of every file of the device. Nobody who has its descriptor can shrink it, which would make an access
/// fault.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Creates a sparse file of `size` bytes, all zero, or returns `OUT_OF_HOST_MEMORY`.
pub(crate) fn create(size: u64) -> Outcome<File> {
    // SAFETY: the name is a C string literal; memfd_create(2) touches nothing else.
    let make = || unsafe { libc::memfd_create(c"ze_soft".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    let made = descriptor::above_streams(|| descriptor::own(make().into()));
    let file = File::from(descriptor::raise(made.map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?));
    file.set_len(size).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?;
    // SAFETY: F_ADD_SEALS takes plain numbers and acts on our file only.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) };
    if sealed == 0 { Ok(file) } else { Err(ZeResult::OUT_OF_HOST_MEMORY) }
}

/// Whether a file has the type and the seals of files from [`create`]. Other files are only queried, not touched.
pub(crate) fn is_memory_file(file: &File) -> bool {
    // SAFETY: F_GET_SEALS only queries.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) == SEALS }
}

/// Frees the pages of a range, which must not be in use. It reads as zero afterwards.
pub(crate) fn punch_hole(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate(2) takes plain numbers and acts on the file only. Pages that are mapped stay mapped.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, length as libc::off_t) };
}
