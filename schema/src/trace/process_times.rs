//! The times of processes as `urscope run` observes them from outside, in a file beside the traces.
//!
//! A trace shows when its process made its last call, but not when it was killed. A line of this file narrows that
//! down. A process without a trace has a line, too, as one that a signal ended before it made one. What the observer
//! needs for both, a process tells it in a [`Notice`], and its memory shows ([`TraceState`]).

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::host::launcher;

/// The name of the file, in the directory of the traces. It has one JSON object per line.
pub const FILE: &str = "process-times.jsonl";

/// What was observed of a process that has ended, or whose trace could not be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessTimes {
    /// The boot of its host, as in the header of its trace.
    pub boot_id: String,
    /// The pid namespace of the observer, as in the header of a trace: its number counts there. 0 if it is not known.
    pub pid_namespace: u64,
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot as in `/proc/PID/stat`.
    pub start: u64,
    /// The last time at which it was seen running, in nanoseconds of `CLOCK_MONOTONIC`; 0 if it had ended before it was
    /// looked at.
    pub alive_ns: u64,
    /// The first time at which it was not there any more, in nanoseconds of `CLOCK_MONOTONIC`.
    pub gone_ns: u64,
    /// The number of the signal that ended it; 0 if it ended by itself, absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u32>,
    /// Of a process without a trace, and of what could not be observed, the name of the run; otherwise empty. There are
    /// no times then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Which process it is, and why it has no trace, as part of a message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub untraced: String,
    /// What could not be observed, as part of a message. There is no process then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unobserved: String,
    /// Which process it is, if a signal ended it before it made a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_death: Option<EarlyDeath>,
}

/// A process that a signal ended before it made a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EarlyDeath {
    /// The path of the program.
    pub executable: String,
    /// Its rank under an MPI launcher.
    pub rank: Option<u32>,
    /// How many ranks its job has, where the launcher tells it.
    pub ranks: Option<usize>,
}

impl EarlyDeath {
    /// A process with the rank in the environment that `variable` looks up.
    pub fn of_rank(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let ranks = launcher::Size::new(&variable).map(|size| size.all);
        Self { executable: String::new(), rank: launcher::rank(&variable), ranks }
    }
}

/// What a process tells the observer of its run when it has made its trace, or could not: JSON, over a connection of
/// its own. From the connection, the kernel tells the observer which process and which user it is, also after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// The name of its run, which only its processes know.
    pub run: String,
    /// The pid namespace in which its number counts.
    pub pid_namespace: u64,
    /// Its number, as in the name of its trace.
    pub pid: u32,
    /// When it started, as in the name of its trace.
    pub start: u64,
    /// The name of its trace; empty if it could not make one.
    pub trace: String,
    /// Which process it is, and why it could not make its trace, as part of a message; otherwise empty.
    pub untraced: String,
}

/// The symbol of a word in the library in which the observer reads whether the process has a trace: that takes no
/// system call of the process, which a filter might forbid.
pub const STATE: &str = "urscope_trace_state";

/// Whether a process has made a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceState {
    /// It has.
    Made = 1,
    /// It could not.
    Failed = 2,
}

impl TraceState {
    /// The word of the process that knows itself by this number. A child has the memory of its parent, but another
    /// number.
    pub fn word(self, pid: u32) -> u64 {
        u64::from(pid) << 32 | self as u64
    }

    /// The number and the state in a word; `None` if there is no state yet.
    pub fn of_word(word: u64) -> Option<(u32, Self)> {
        let state = [Self::Made, Self::Failed].into_iter().find(|state| *state as u64 == word & u64::from(u32::MAX))?;
        Some(((word >> 32) as u32, state))
    }
}
