//! File descriptors that arrive as numbers: in a handle, in a structure, or from another process.
//!
//! Must never close a number that belongs to somebody else, nor keep that of a standard stream.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{io, mem::ManuallyDrop, path::Path};

use super::process;

/// The file of a descriptor of this process, without taking ownership: it is not closed here. `None` if the number
/// is not an open descriptor.
pub(crate) fn borrow(number: i32) -> Option<ManuallyDrop<File>> {
    // SAFETY: F_GETFD only queries whether the number is a descriptor.
    let open = number >= 0 && unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
    // SAFETY: the number is an open descriptor, and ManuallyDrop keeps it from being closed.
    open.then(|| ManuallyDrop::new(unsafe { File::from_raw_fd(number) }))
}

/// A duplicate of a descriptor of this process (F_DUPFD_CLOEXEC), or the error of fcntl(2): `EMFILE` when the process
/// has no descriptors left, `EBADF` when the number is not a descriptor.
pub(crate) fn duplicate(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number, and makes a new descriptor if the number is one.
    own(libc::c_long::from(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }))
}

/// A duplicate of a descriptor with a number that select(2) cannot handle, if the limit of this process
/// allows it: the low numbers are left to the application.
pub(crate) fn raise(descriptor: OwnedFd) -> OwnedFd {
    let lowest = libc::FD_SETSIZE as libc::c_int;
    // SAFETY: F_DUPFD_CLOEXEC takes a number, and makes a new descriptor if there is room.
    let raised = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
    own(libc::c_long::from(raised)).unwrap_or(descriptor)
}

/// Makes a descriptor that is none of the standard streams. If the application has closed these, what it writes to them
/// fails as before, and does not land in the file.
pub(crate) fn above_streams(make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let _occupied = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO].map(|number| {
        let is_closed = borrow(number).is_none();
        // SAFETY: open(2) reads a C string. Reads and writes of such a descriptor fail as of a closed one.
        let open = || unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
        is_closed.then(|| own(libc::c_long::from(open())))
    });
    let made = make()?;
    // A thread may have closed one meanwhile. A duplicate is above them.
    if made.as_raw_fd() > libc::STDERR_FILENO { Ok(made) } else { made.try_clone() }
}

/// Opens a file, as [`above_streams`] does.
pub(crate) fn open(path: impl AsRef<Path>, options: &OpenOptions) -> io::Result<File> {
    above_streams(|| options.open(path).map(OwnedFd::from)).map(File::from)
}

/// How many descriptors this process may have (RLIMIT_NOFILE).
pub(crate) fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) writes the structure that it is given. It fails for other resources only.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// A duplicate of descriptor `number` of process `pid`, which must have started at `started` (pidfd_open(2),
/// pidfd_getfd(2)).
pub(crate) fn fetch(pid: u32, started: u64, number: i32) -> io::Result<File> {
    // SAFETY: pidfd_open takes plain numbers.
    let handle = above_streams(|| own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::c_long, 0) }))?;
    // Checked once the pidfd pins the process: if the start times agree, it is the process that exported the
    // descriptor.
    if process::start_time(pid) != Some(started) {
        return Err(io::Error::other("the producer has exited and its pid belongs to another process"));
    }
    let number = libc::c_long::from(number);
    // SAFETY: pidfd_getfd takes plain numbers.
    above_streams(|| own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), number, 0) }))
        .map(File::from)
}

/// Takes ownership of the descriptor that a system call returned.
pub(crate) fn own(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}
