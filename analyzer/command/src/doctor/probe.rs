//! The two processes between which the doctor moves a descriptor: one offers a file, the other one takes it.
//!
//! This is what libumf does with a producer's memory. Both are children of the doctor, and not of each other, because
//! that is how producers and consumers are related, and because the rules for children are kinder.

use std::{
    fs::File,
    io::{self, BufRead as _, Write as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::fs::FileExt as _,
    },
    process::ExitCode,
};

use clap::Subcommand;
use rustix::{
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

/// What the offered file holds.
const CONTENT: &[u8] = b"urscope";

/// The part that a child plays.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Role {
    /// Open a file, say our number and the file's, and wait for the end of input.
    Offer,
    /// Take the file of another process, and say what came of it.
    Take {
        /// The other process.
        pid: i32,
        /// Its descriptor.
        descriptor: RawFd,
    },
}

/// The system call that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Open,
    Get,
    Read,
}

impl Step {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Open => "pidfd_open",
            Self::Get => "pidfd_getfd",
            Self::Read => "read",
        }
    }
}

/// A refusal, or the descriptor came over and could be used.
pub(crate) type Outcome = Result<(), (Step, Errno)>;

/// Plays a part.
pub(crate) fn play(role: Role) -> ExitCode {
    let played = match role {
        Role::Offer => offer(),
        Role::Take { pid, descriptor } => writeln!(io::stdout(), "{}", say(take(pid, descriptor))),
    };
    if played.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn offer() -> io::Result<()> {
    let file = offered()?;
    writeln!(io::stdout(), "{} {}", std::process::id(), file.as_raw_fd())?;
    io::stdout().flush()?;
    io::stdin().lock().skip_until(b'\n').map(drop)
}

/// A file in memory, as the software device has them.
pub(crate) fn offered() -> io::Result<File> {
    let mut file = File::from(memfd_create("urscope-doctor", MemfdFlags::CLOEXEC)?);
    file.write_all(CONTENT)?;
    Ok(file)
}

/// Takes a descriptor from a process and reads what is behind it.
pub(crate) fn take(pid: i32, descriptor: RawFd) -> Outcome {
    let pid = Pid::from_raw(pid).ok_or((Step::Open, Errno::SRCH))?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| (Step::Open, errno))?;
    let taken = pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).map_err(|errno| (Step::Get, errno))?;
    // The position is shared by all who have the file: it is neither relied on nor moved.
    let mut content = [0; CONTENT.len()];
    match File::from(taken).read_exact_at(&mut content, 0) {
        Ok(()) if content == CONTENT => Ok(()),
        Ok(()) => Err((Step::Read, Errno::BADF)),
        Err(error) => Err((Step::Read, Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    }
}

fn say(outcome: Outcome) -> String {
    match outcome {
        Ok(()) => "ok".to_owned(),
        Err((step, errno)) => format!("{} {}", step.name(), errno.raw_os_error()),
    }
}

/// Understands what [`say`] said.
pub(crate) fn hear(line: &str) -> Option<Outcome> {
    if line.trim() == "ok" {
        return Some(Ok(()));
    }
    let (name, errno) = line.trim().split_once(' ')?;
    let step = [Step::Open, Step::Get, Step::Read].into_iter().find(|step| step.name() == name)?;
    Some(Err((step, Errno::from_raw_os_error(errno.parse().ok()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for outcome in [Ok(()), Err((Step::Open, Errno::SRCH)), Err((Step::Get, Errno::PERM))] {
            assert_eq!(hear(&say(outcome)), Some(outcome));
        }
        assert_eq!(hear("what"), None);
    }

    #[test]
    fn a_descriptor_can_be_taken_again_and_again() {
        let file = offered().unwrap();
        let ourselves = std::process::id() as i32;
        let first = take(ourselves, file.as_raw_fd());
        assert_eq!(take(ourselves, file.as_raw_fd()), first);
        assert!(!matches!(first, Err((Step::Read, _))), "{first:?}");
    }

    #[test]
    fn a_process_that_is_not_there_has_nothing_to_give() {
        assert_eq!(take(i32::MAX, 0), Err((Step::Open, Errno::SRCH)));
    }
}
