//! What processes tell `urscope run` when they make their traces: by a socket, which gives a pidfd of each, however soon it ends.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use urscope_schema::trace::process_times::Notice;

use super::end_of_process;

/// The most bytes of a notice that are read.
const NOTICE_LIMIT: u64 = 1 << 16;

/// The most connections whose text is not there yet. Every user of the machine can open some.
const PENDING: usize = 256;

/// What processes tell when they make their traces. Nobody else knows the name of the run.
pub(super) struct Notices {
    run: String,
    listener: UnixListener,
    /// The connections whose text is not there yet.
    open: Vec<UnixStream>,
}

impl Notices {
    /// Begins to listen at an abstract socket, for the processes of a run.
    pub(super) fn listen(address: &str, run: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(address)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { run: run.to_owned(), listener, open: Vec::new() })
    }

    /// What was told since the last call, and by which process.
    pub(super) fn take(&mut self) -> Vec<(Notice, Option<OwnedFd>)> {
        while let Ok((connection, _)) = self.listener.accept() {
            self.open.extend(connection.set_nonblocking(true).is_ok().then_some(connection));
            if self.open.len() > PENDING {
                self.open.remove(0);
            }
        }
        let mut told = Vec::new();
        self.open.retain(|connection| {
            let mut text = Vec::new();
            match connection.take(NOTICE_LIMIT).read_to_end(&mut text) {
                // A process writes it at once. Nobody else may keep a connection open.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && text.is_empty() => return true,
                _ => {}
            }
            let notice = serde_json::from_slice::<Notice>(&text).ok().filter(|notice| notice.run == self.run);
            told.extend(notice.map(|notice| (notice, end_of_process::peer(connection.as_fd()))));
            false
        });
        told
    }

    /// What is readable when something is told.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.iter().map(UnixStream::as_fd).chain([self.listener.as_fd()])
    }
}
