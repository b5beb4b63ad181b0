//! Two processes: this binary in another role, and the pipes of its standard streams through which the two talk.

use std::io::{Read, Stdin, Stdout, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::api::child;

/// The other process, which does its part step by step as it is told.
pub(crate) struct Peer {
    pub(crate) process: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
}

impl Peer {
    pub(crate) fn start(name: &str, role: &str) -> Self {
        let mut command = child(name, role, &[]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (process.stdin.take(), process.stdout.take().unwrap());
        let mut peer = Self { process, to, from };
        // The test runner says something first; a mark tells where our own words begin.
        let mut last = [0; 4];
        while last != *MARK {
            last.rotate_left(1);
            peer.from.read_exact(&mut last[3..]).unwrap();
        }
        peer
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.to.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn end(mut self) {
        drop(self.to.take());
        assert!(self.process.wait().unwrap().success());
    }
}

const MARK: &[u8; 4] = b"\0>\0>";

/// The other end of a [`Peer`].
pub(crate) struct Pipe {
    pub(crate) from: Stdin,
    to: Stdout,
}

impl Pipe {
    pub(crate) fn open() -> Self {
        let pipe = Self { from: stdin(), to: stdout() };
        pipe.send(MARK);
        pipe
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        let mut out = self.to.lock();
        out.write_all(bytes).unwrap();
        out.flush().unwrap();
    }

    pub(crate) fn receive<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.lock().read_exact(&mut bytes).unwrap();
        bytes
    }
}
