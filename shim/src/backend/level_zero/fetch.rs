//! Fetches a descriptor from its producer by `pidfd_open(2)` and `pidfd_getfd(2)`, as libumf does.
//!
//! Missing permission has its own error. A failure leaves no descriptor open.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use urscope_schema::api::ResultCode;

use super::{handle_data::HandleData, result};
use crate::raw::files::plain_file::{self, above_streams};
use crate::raw::processes::{fork_reset::ForkReset, process::start_of};

/// A process, distinguished from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// The pid, in its own namespace.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(crate) started: u64,
}

static THIS: ForkReset<Process> = ForkReset::new(this_process);

fn this_process() -> Process {
    let pid = std::process::id();
    Process { pid, started: start_of(pid).unwrap_or(0) }
}

impl Process {
    /// The producer of handle data.
    pub(crate) const fn producer_of(data: &HandleData) -> Self {
        Self { pid: data.pid, started: data.started }
    }

    /// The current process.
    pub(crate) fn this() -> Self {
        *THIS.get()
    }

    /// Fetches a copy of a descriptor of this process, which must not be the current one.
    pub(crate) fn fetch(self, descriptor: i32) -> Result<OwnedFd, ResultCode> {
        self.fetch_or_why(descriptor).map_err(|refusal| result::of_kernel(&refusal))
    }

    /// Checks that the process still runs and allows fetching. Used where the driver fetches and would not report why
    /// it fails.
    pub(crate) fn check_access(self) -> Result<(), ResultCode> {
        if self == Self::this() {
            return Ok(());
        }
        match self.fetch_or_why(0) {
            Err(refusal) if refusal.raw_os_error() != Some(libc::EBADF) => Err(result::of_kernel(&refusal)),
            _ => Ok(()),
        }
    }

    fn fetch_or_why(self, descriptor: i32) -> io::Result<OwnedFd> {
        // SAFETY: pidfd_open(2) takes plain numbers.
        let open = || own(unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid as libc::c_long, 0) });
        let process = above_streams(open)?;
        // Read after the pidfd is open: if this process started when the producer did, it is the producer.
        if start_of(self.pid)? != self.started {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let process = libc::c_long::from(process.as_raw_fd());
        let descriptor = libc::c_long::from(descriptor);
        // SAFETY: pidfd_getfd(2) takes plain numbers.
        above_streams(|| own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, descriptor, 0) }))
    }
}

/// Another descriptor of an open file.
pub(crate) fn duplicate(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) with F_DUPFD_CLOEXEC takes plain numbers.
    own(libc::c_long::from(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) }))
}

/// Whether two descriptors of this process refer to the same open file; false if the kernel does not support kcmp(2).
pub(crate) fn same_file(one: i32, other: i32) -> bool {
    const KCMP_FILE: libc::c_long = 0;
    let pid = libc::c_long::from(std::process::id());
    let one = libc::c_long::from(one);
    let other = libc::c_long::from(other);
    // SAFETY: kcmp(2) takes plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one, other) == 0 }
}

/// Forgets the identity of the parent.
pub(crate) fn after_fork_in_child() {
    THIS.reset(this_process());
}

fn own(answer: libc::c_long) -> io::Result<OwnedFd> {
    plain_file::own(answer as libc::c_int)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_process_that_never_existed_is_an_invalid_value() {
        let nobody = Process { pid: i32::MAX as u32, started: 1 };
        assert_eq!(nobody.fetch(0).map(drop), Err(ResultCode::INVALID_VALUE));
    }

    #[test]
    fn a_pid_that_is_used_again_is_an_invalid_value() {
        let parent = std::os::unix::process::parent_id();
        let later = Process { pid: parent, started: start_of(parent).unwrap() + 1 };
        assert_eq!(later.fetch(0).map(drop), Err(ResultCode::INVALID_VALUE));
    }

    #[test]
    fn a_copy_refers_to_the_same_file_and_another_open_does_not() {
        let file = File::open("/proc/self/stat").unwrap();
        let other = File::open("/proc/self/stat").unwrap();
        let copy = duplicate(file.as_raw_fd()).unwrap();
        assert!(same_file(file.as_raw_fd(), copy.as_raw_fd()));
        assert!(!same_file(file.as_raw_fd(), other.as_raw_fd()));
        assert!(duplicate(-1).is_err());
    }
}
