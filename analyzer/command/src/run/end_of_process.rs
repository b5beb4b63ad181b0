//! Which signal ended a process that this one did not start, and so cannot wait for; and which process is at the other
//! end of a socket.
//!
//! It has unsafe code: no safe function asks a pidfd, or a socket for one.

#![allow(unsafe_code, reason = "neither the standard library nor rustix has PIDFD_GET_INFO and SO_PEERPIDFD")]

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::{fs, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use rustix::ioctl::{self, Updater, opcode};
use urscope_schema::host::proc_stat::ProcStat;

/// The first version of the kernel's `struct pidfd_info` (`linux/pidfd.h`). Later fields follow it.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pids: [u32; 3],
    credentials: [u32; 8],
    /// As `wait` returns it.
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`: the field `exit_code` is asked for, and filled in.
const EXIT: u64 = 1 << 3;

/// `PIDFD_GET_INFO`.
const GET_INFO: ioctl::Opcode = opcode::read_write::<PidfdInfo>(0xff, 11);

/// The number of the signal that ended a process, or 0 if it ended by itself. `None` if that is not known: Linux tells
/// it of a process that its parent has waited for since 6.15 only.
pub(super) fn signal(pidfd: Option<impl AsFd>, pid: u32, start: u64) -> Option<u32> {
    // The parent may wait for it at any moment: before that /proc tells the status, and afterwards the pidfd.
    let status = of_zombie(pid, start).or_else(|| of_pidfd(pidfd?.as_fd()))?;
    Some(ExitStatus::from_raw(status).signal().unwrap_or_default().unsigned_abs())
}

/// The process that made a connection: its number here, and its user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) uid: u32,
}

/// The process that made a connection, when it did so.
pub(super) fn peer(connection: BorrowedFd<'_>) -> Option<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    ask(connection, libc::SO_PEERCRED, &mut peer).then_some(Peer { pid: peer.pid.unsigned_abs(), uid: peer.uid })
}

/// The pidfd of the process that made a connection. Linux gives it since 6.5, and after the process was waited for
/// since 6.16.
pub(super) fn peer_pidfd(connection: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut pidfd = -1_i32;
    let has_answered = ask(connection, libc::SO_PEERPIDFD, &mut pidfd);
    // SAFETY: the system call has just made this descriptor.
    (has_answered && pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) })
}

/// Asks for an option of a socket; false if it has none. The answers are integers, or structures of integers.
fn ask<T: Copy>(socket: BorrowedFd<'_>, option: libc::c_int, answer: &mut T) -> bool {
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = std::ptr::from_mut(answer).cast();
    let room = &raw mut length;
    // SAFETY: getsockopt(2) writes no more than `length` bytes, which `answer` has.
    unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, to, room) == 0 }
}

fn of_zombie(pid: u32, start: u64) -> Option<i32> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let stat = ProcStat::parse(&text).filter(|stat| stat.start == start && stat.has_ended())?;
    stat.exit_code
}

fn of_pidfd(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    // SAFETY: the opcode has the size of `PidfdInfo` in it, and the kernel writes no more than that, integers only.
    unsafe { ioctl::ioctl(pidfd, Updater::<GET_INFO, _>::new(&mut info)) }.ok()?;
    (info.mask & EXIT != 0).then_some(info.exit_code)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    fn start(child: &Child) -> u64 {
        ProcStat::parse(&fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap()).unwrap().start
    }

    #[test]
    fn the_signal_is_known_before_the_parent_waits() {
        for (command, expected) in [("read _; kill -SEGV $$", 11), ("read _; exit 3", 0)] {
            let mut child =
                Command::new("sh").args(["-c", command]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            let pid = child.id();
            let start = start(&child);
            let pidfd = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty()).unwrap();
            assert_eq!(signal(Some(&pidfd), pid, start), None, "it runs");
            drop(child.stdin.take());
            while signal(Some(&pidfd), pid, start).is_none() {
                std::thread::yield_now();
            }
            assert_eq!(signal(Some(&pidfd), pid, start), Some(expected), "{command}");
            child.wait().unwrap();
            // An older kernel does not know.
            assert!([Some(expected), None].contains(&signal(Some(&pidfd), pid, start)), "{command}");
        }
    }
}
