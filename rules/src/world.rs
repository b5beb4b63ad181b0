//! All handles of all processes.
use urscope_schema::call::{Enter, Exit, Nanos};

use crate::finding::Finding;

/// A process, numbered by the world in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number on its host.
    pub pid: u32,
    /// When it started, in the kernel's ticks: tells it apart from an earlier process of the same number.
    pub start: u64,
    /// Within equal keys, handles can be exchanged and clocks be compared: one boot of one host, one time namespace.
    pub host: u64,
    /// Its executable.
    pub executable: String,
    /// The process it is a forked copy of, if that one is known.
    pub forked_from: Option<ProcessId>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In order: what it left is left for good.
    Exited,
    /// In the middle of its work: it had no chance to tidy up.
    Killed,
    /// Not at all: it still runs.
    Running,
    /// Unknown: its trace stopped, or calls are missing in it.
    Incomplete,
}

/// All handles of all processes.
#[derive(Debug, Default)]
pub struct World;

impl World {
    /// An empty world.
    pub fn new() -> Self {
        Self
    }

    /// A process begins.
    pub fn begin(&mut self, _process: Process) -> ProcessId {
        ProcessId(0)
    }

    /// Looks at a call before it is passed on; moves nothing.
    pub fn check(&self, _who: ProcessId, _enter: &Enter, _found: &mut Vec<Finding>) {}

    /// A call begins: moves, says nothing.
    pub fn enter(&mut self, _who: ProcessId, _enter: &Enter) {}

    /// A call returns.
    pub fn exit(&mut self, _who: ProcessId, _exit: &Exit, _found: &mut Vec<Finding>) {}

    /// A process ends.
    pub fn end(&mut self, _who: ProcessId, _how: End, _at: Nanos, _found: &mut Vec<Finding>) {}

    /// The run is over.
    pub fn finish(&mut self, _found: &mut Vec<Finding>) {}
}
