//! Descriptors that travel to another process: in a message of a socket, or fetched by the receiver.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::{io::Error, os::linux::net::SocketAddrExt};

/// Room for the header of a message and one descriptor: CMSG_SPACE(4).
const CONTROL: usize = 24;

/// Fetches descriptor `number` of another process (pidfd_getfd(2)), as libumf and Intel MPI do.
pub(crate) fn fetch(process: u32, number: i32) -> OwnedFd {
    // SAFETY: pidfd_open and pidfd_getfd take plain numbers, and what they make is ours.
    unsafe {
        let process = OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(process), 0) as i32);
        let number = libc::c_long::from(number);
        OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) as i32)
    }
}

/// A socket that the other process connects to, and its number: that of this thread, which is that of one test.
pub(crate) fn listen() -> (UnixListener, u32) {
    // SAFETY: it takes nothing.
    let number = unsafe { libc::gettid() } as u32;
    (UnixListener::bind_addr(&address(number)).unwrap(), number)
}

pub(crate) fn connect(number: u32) -> UnixStream {
    UnixStream::connect_addr(&address(number)).unwrap()
}

fn address(number: u32) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("urscope-device-test-{number}")).unwrap()
}

/// Sends a descriptor in a message (SCM_RIGHTS, unix(7)), as oneCCL and libfabric do.
pub(crate) fn send(socket: &UnixStream, number: i32) {
    let mut control = [0_u64; CONTROL / 8];
    transfer(&mut control, |message| {
        // SAFETY: the control buffer has room for the header and the number, and is aligned for the header.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(number);
            libc::sendmsg(socket.as_raw_fd(), message, 0)
        }
    });
}

/// The descriptor of a message.
pub(crate) fn receive(socket: &UnixStream) -> OwnedFd {
    let mut control = [0_u64; CONTROL / 8];
    let mut number = -1;
    transfer(&mut control, |message| {
        // SAFETY: recvmsg fills the control buffer, whose message is the one that `send` has made.
        unsafe {
            let received = libc::recvmsg(socket.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC);
            let header = libc::CMSG_FIRSTHDR(message);
            assert!(!header.is_null());
            number = libc::CMSG_DATA(header).cast::<i32>().read_unaligned();
            received
        }
    });
    // SAFETY: the kernel has made this descriptor for us.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Passes a message with one byte and the control buffer to a call that returns the number of bytes.
fn transfer(control: &mut [u64; CONTROL / 8], call: impl FnOnce(*mut libc::msghdr) -> libc::ssize_t) {
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all zeroes is a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL;
    assert_eq!(call(&raw mut message), 1, "{}", Error::last_os_error());
}
