//! Who a process is, and how it ended.

use std::sync::Arc;

use urscope_schema::call::Nanos;

use super::rights::Rights;
use crate::place::ProcessId;

/// Who a process is.
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
    /// The process it is a forked copy of; [`ProcessId::UNKNOWN`] if it is a copy of one that was not traced, or was not traced from its
    /// beginning on.
    pub forked_from: Option<ProcessId>,
    /// When it was forked, at the latest; what its parent had ended by then is ended in it, too.
    pub forked_at: Option<Nanos>,
    /// What the kernel lets it do.
    pub rights: Arc<Rights>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In order: what it left is left for good.
    Exited,
    /// It became another program (`exec`): what it left is left for good.
    Exec,
    /// In the middle of its work: it had no chance to clean up.
    Killed,
    /// Not at all: it still runs.
    Running,
    /// Unknown: its trace stopped, or calls are missing in it.
    Incomplete,
}

/// What is missing in a trace; nothing of both where it is closed and has no footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Records of calls that could not be written.
    pub lost: u64,
    /// Lines that could not be used.
    pub lines: u64,
}
