//! A second process: this binary in another role, connected through the pipes of its standard streams.

use std::io::{Read, Stdin, Stdout, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::api::{assert_one_passed, child};

/// The other process, as the test controls it.
pub(crate) struct Peer {
    pub(crate) process: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
}

impl Peer {
    pub(crate) fn start(name: &str, role: &str) -> Self {
        let mut command = child(name, role, &[]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = process.stdin.take();
        let from = process.stdout.take().unwrap();
        let mut peer = Self { process, to, from };
        // The test harness prints its own lines first; a mark shows where the messages begin.
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

    /// Closes its input, and checks that it exits normally and has run exactly one test.
    #[track_caller]
    pub(crate) fn end(mut self) {
        drop(self.to.take());
        let mut rest = Vec::new();
        self.from.read_to_end(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        assert_one_passed(&rest);
    }
}

const MARK: &[u8; 4] = b"\0>\0>";

/// The connection to the test, in the other process.
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
