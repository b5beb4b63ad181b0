//! Which processes a signal ended before they made a trace: no trace tells of them.
//!
//! They are known from looks into /proc, so one that ends within milliseconds may be missed, unless it is the program itself.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::{fs, os::unix::ffi::OsStrExt as _, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use urscope_analyzer::analysis::is_running;
use urscope_schema::trace::process_times::EarlyDeath;

use super::end_of_process;
use super::process_times::{Key, has_ended};

/// The most processes that are waited for by a descriptor. The ends of others are not known.
const DESCRIPTORS: usize = 256;

/// A process that has made no trace so far.
struct Waiting {
    process: EarlyDeath,
    pidfd: OwnedFd,
}

/// The processes of a run that have made no traces so far.
#[derive(Default)]
pub(super) struct Untraced(HashMap<Key, Waiting>);

impl Untraced {
    /// Adds a process that executes this file. One that is known has begun to execute another, with an environment of its own.
    pub(super) fn add(&mut self, key: Key, executable: &Path) {
        let known = self.0.remove(&key).map(|waiting| waiting.pidfd);
        let open = || {
            let pidfd = pidfd_open(Pid::from_raw(key.0 as i32)?, PidfdFlags::empty()).ok();
            // The check comes after the open, so the descriptor is not of a later process with this number.
            pidfd.filter(|_| self.0.len() < DESCRIPTORS && is_running(key.0, key.1))
        };
        let Some(pidfd) = known.or_else(open) else { return };
        let environment = fs::read(format!("/proc/{}/environ", key.0)).unwrap_or_default();
        let executable = executable.to_string_lossy().into_owned();
        let process = EarlyDeath { executable, ..EarlyDeath::of_rank(|name| value(&environment, name)) };
        self.0.insert(key, Waiting { process, pidfd });
    }

    /// Removes a process that has made a trace.
    pub(super) fn remove(&mut self, key: Key) {
        self.0.remove(&key);
    }

    /// What is readable when one of them has ended.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.values().map(|waiting| waiting.pidfd.as_fd())
    }

    /// Those that have ended.
    pub(super) fn ended(&self) -> Vec<Key> {
        self.0.iter().filter(|(_, waiting)| has_ended(&waiting.pidfd)).map(|(key, _)| *key).collect()
    }

    /// Removes one that has ended. Returns what it was and the signal that ended it, if that matters ([`matters`]).
    pub(super) fn take(&mut self, key: Key) -> Option<(EarlyDeath, u32)> {
        let Waiting { process, pidfd } = self.0.remove(&key)?;
        let signal = end_of_process::signal(Some(pidfd), key.0, key.1)?;
        matters(&process, signal).then_some((process, signal))
    }
}

/// Whether the end of a process by a signal says why the run has too little to judge: of a rank each does. Other processes are ended by
/// signals in correct programs, too, but not by those of an error.
fn matters(process: &EarlyDeath, signal: u32) -> bool {
    let of_an_error = [Signal::ILL, Signal::TRAP, Signal::ABORT, Signal::BUS, Signal::FPE, Signal::SEGV, Signal::SYS];
    signal != 0 && (process.rank.is_some() || of_an_error.iter().any(|it| it.as_raw().unsigned_abs() == signal))
}

/// The value of a variable in an environment, as `/proc/PID/environ` has it.
pub(super) fn value(environment: &[u8], name: &str) -> Option<OsString> {
    let mut values = environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| OsStr::from_bytes(value).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_by_signals_of_errors_matter_and_others_only_of_ranks() {
        let [rank, other] = [Some(0), None].map(|rank| EarlyDeath { rank, ..EarlyDeath::default() });
        assert!(matters(&other, 4) && matters(&other, 11) && !matters(&other, 9) && !matters(&other, 15));
        assert!(matters(&rank, 9) && !matters(&rank, 0));
    }

    #[test]
    fn values_are_found_in_an_environment() {
        let environment = b"A=1\0PMI_RANK=3\0PMI_RANK_X=4\0";
        assert_eq!(value(environment, "PMI_RANK"), Some("3".into()));
        assert_eq!(value(environment, "PMI"), None);
    }
}
