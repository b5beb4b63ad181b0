//! Which processes a signal ended before they made a trace: no trace tells of them.
//!
//! They are known from looks into /proc, so one that ends within milliseconds may be missed, unless it is the program
//! itself.

use std::ffi::{OsStr, OsString};
use std::{fs, os::unix::ffi::OsStrExt as _};

use rustix::process::Signal;
use urscope_schema::trace::process_times::EarlyDeath;

/// A process with the rank that its environment has.
pub(super) fn rank_of(pid: u32) -> EarlyDeath {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    EarlyDeath::of_rank(|name| value(&environment, name))
}

/// Whether the end of a process by a signal says why the run has too little to judge: of a rank each does. Other
/// processes are ended by signals in correct programs, too, but not by those of an error.
pub(super) fn matters(process: &EarlyDeath, signal: u32) -> bool {
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
