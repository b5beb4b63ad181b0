//! What processes tell `urscope run` when they make their traces: by a socket, which gives a pidfd of each, however
//! soon it ends.
//!
//! Everybody in the network namespace can connect to it. So a process must be one of the same user, or a descendant if
//! that is root, as the kernel says; its number must be the one that it tells; and it must know the name of the run,
//! which is in the environment of the run's processes and in their traces, where no other user can read it.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::{fs, process};

use urscope_analyzer::analysis::pid_namespace;
use urscope_schema::trace::process_times::Notice;

use super::descendants::is_descendant;
use super::end_of_process::{self, Peer};

/// The most bytes of a notice that are read.
const NOTICE_LIMIT: u64 = 1 << 14;

/// The most connections of processes of the run whose text is not there yet.
const PENDING: usize = 256;

/// The most notices of a run.
const TAKEN: usize = 1 << 20;

/// The most connections that the kernel holds until they are accepted, where that cannot be read.
const BACKLOG: usize = 128;

pub(super) struct Notices {
    run: String,
    pid_namespace: u64,
    listener: UnixListener,
    /// The most connections that the kernel holds until they are accepted. So many are accepted in one go.
    backlog: usize,
    /// The connections whose text is not there yet, and who made them.
    open: Vec<(UnixStream, Peer)>,
    taken: usize,
    /// Whether more came than could be taken.
    pub(super) is_overrun: bool,
}

impl Notices {
    /// Begins to listen at an abstract socket, for the processes of a run.
    pub(super) fn listen(address: &str, run: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(address)?)?;
        listener.set_nonblocking(true)?;
        let backlog = fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok());
        let run = run.to_owned();
        let backlog = backlog.unwrap_or(BACKLOG);
        Ok(Self {
            run,
            pid_namespace: pid_namespace(),
            listener,
            backlog,
            open: Vec::new(),
            taken: 0,
            is_overrun: false,
        })
    }

    /// What was told since the last call, and by which process.
    pub(super) fn take(&mut self) -> Vec<(Notice, Option<OwnedFd>)> {
        let mut accepted = 0;
        while accepted < self.backlog
            && let Ok((connection, _)) = self.listener.accept()
        {
            accepted += 1;
            let peer = end_of_process::peer(connection.as_fd()).filter(|peer| is_of_the_run(*peer));
            if let Some(peer) = peer.filter(|_| connection.set_nonblocking(true).is_ok()) {
                self.open.push((connection, peer));
            }
        }
        self.is_overrun |= accepted == self.backlog || self.open.len() > PENDING;
        self.open.drain(..self.open.len().saturating_sub(PENDING));
        let mut told = Vec::new();
        let run = &self.run;
        let own = self.pid_namespace;
        self.open.retain(|(connection, peer)| {
            let mut text = Vec::new();
            match connection.take(NOTICE_LIMIT).read_to_end(&mut text) {
                // A process writes it at once.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && text.is_empty() => return true,
                _ => {}
            }
            let is_true =
                |notice: &Notice| notice.run == *run && (notice.pid_namespace != own || notice.pid == peer.pid);
            let notice = serde_json::from_slice::<Notice>(&text).ok().filter(is_true);
            told.extend(notice.map(|notice| (notice, end_of_process::peer_pidfd(connection.as_fd()))));
            false
        });
        self.taken += told.len();
        if self.taken > TAKEN {
            self.is_overrun = true;
            told.clear();
        }
        told
    }

    /// What is readable when something is told.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.iter().map(|(connection, _)| connection.as_fd()).chain([self.listener.as_fd()])
    }
}

/// Whether a process may be one of the run: one of this user. Of root's, some may have become another user.
fn is_of_the_run(peer: Peer) -> bool {
    let own = rustix::process::geteuid();
    peer.uid == own.as_raw() || own.is_root() && is_descendant(peer.pid, process::id())
}
