//! Tells `urscope run` of this process, which may end before it is looked at, and shows it the same in a word of
//! memory, where it is not told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, mem, os::fd::AsRawFd as _};

use urscope_schema::trace::process_times::TraceState;

use crate::raw::files::plain_file::{above_streams, own};

/// Whether this process has a trace, where `urscope run` looks for it
/// ([`urscope_schema::trace::process_times::STATE`]).
#[unsafe(export_name = "urscope_trace_state")]
static STATE: AtomicU64 = AtomicU64::new(0);

/// Shows whether this process, which has the number `pid`, has made a trace.
pub fn show(pid: u32, state: TraceState) {
    STATE.store(state.word(pid), Ordering::Relaxed);
}

/// Sends a text to the abstract Unix socket `name`, over a connection of its own. Waits for nobody.
pub fn tell(name: &str, text: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) has no pointers.
    let socket = above_streams(|| own(unsafe { libc::socket(libc::AF_UNIX, kind, 0) }))?;
    // SAFETY: zeros are an address, of the family AF_UNSPEC.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The name of an abstract socket follows a zero.
    let room = address.sun_path.get_mut(1..=name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from.cast_signed());
    let length = mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    let answer =
        // SAFETY: connect(2) reads so many bytes of the address, which has more.
        unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length as libc::socklen_t) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: send(2) reads the bytes of the text. An empty connection has room for them.
    let sent = unsafe { libc::send(socket.as_raw_fd(), text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL) };
    if sent == text.len().cast_signed() { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn a_text_arrives_after_the_connection_was_closed() {
        let name = format!("urscope-test-{}", std::process::id());
        assert_eq!(tell(&name, b"nobody").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        tell(&name, b"one").unwrap();
        tell(&name, b"two").unwrap();
        let received = || {
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!([received(), received()], ["one", "two"]);
        assert_eq!(tell(&"x".repeat(200), b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
