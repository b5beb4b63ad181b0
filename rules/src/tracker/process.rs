//! The identity of a process, and how it ended.

use std::sync::Arc;

use urscope_schema::call::Nanos;

use super::rights::Rights;
use crate::place::ProcessId;

/// The identity of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number on its host.
    pub pid: u32,
    /// When it started, in the kernel's ticks: distinguishes it from an earlier process of the same number.
    pub start: u64,
    /// Within equal keys, handles can be exchanged and clocks be compared: one boot of one host, one time namespace.
    pub host: u64,
    /// Its executable.
    pub executable: Arc<str>,
    /// Its rank under an MPI launcher.
    pub rank: Option<u32>,
    /// The number of its parent when its trace began.
    pub parent: Option<u32>,
    /// The process it is a forked copy of; [`ProcessId::UNKNOWN`] if it is a copy of one that was not
    /// traced, or was not traced from its start.
    pub forked_from: Option<ProcessId>,
    /// It started no earlier: the time before its fork, or the tick of its start. What the parent of a fork had ended
    /// by then is ended in it, too. `None` if unknown.
    pub started: Option<Nanos>,
    /// Its permissions in the kernel.
    pub rights: Arc<Rights>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It exited: its leftovers can no longer be ended.
    Exited,
    /// It became another program (`exec`): its leftovers can no longer be ended.
    Exec,
    /// It was killed: it had no chance to clean up.
    Killed,
    /// It still runs.
    Running,
    /// Unknown: its trace is incomplete.
    Incomplete,
}

/// What is missing in a trace. Both are 0 if the trace is closed and has no footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Records of calls that could not be written.
    pub lost: u64,
    /// Lines that could not be used.
    pub lines: u64,
}
