//! What the doctor does in processes of its own: two pass a descriptor, of which one offers a file and the other takes
//! it, and one loads libraries.
//!
//! libumf passes a producer's memory in the same way. Both processes are children of the doctor, because producers and
//! consumers are siblings too, and the kernel allows more between parent and child.

use std::io::{self, BufRead as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::{fs::File, os::unix::fs::FileExt as _, path::PathBuf, process::ExitCode};

use clap::Subcommand;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::loading;

const CONTENT: &[u8] = b"urscope";

/// What a child process does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Role {
    /// Open a file, print the process number and the descriptor, and wait for the end of input.
    Offer,
    /// Take the file of another process, and print the result.
    Take {
        /// The number of the other process.
        pid: i32,
        /// The descriptor in that process.
        descriptor: RawFd,
    },
    /// Load libraries, and print which one cannot be loaded.
    Load {
        /// Their paths.
        libraries: Vec<PathBuf>,
    },
}

/// The system calls that may be refused.
pub(crate) const OPEN: &str = "pidfd_open";
pub(crate) const GET: &str = "pidfd_getfd";
pub(crate) const READ: &str = "read";

/// Success if the descriptor was received and could be read, else the system call that failed and its error.
pub(crate) type Outcome = Result<(), (&'static str, Errno)>;

/// Runs a child process of the doctor.
pub(crate) fn play(role: &Role) -> ExitCode {
    let played = match role {
        Role::Load { libraries } => return loading::load(libraries),
        Role::Offer => offer(),
        Role::Take { pid, descriptor } => writeln!(io::stdout(), "{}", encode(take(*pid, *descriptor))),
    };
    if played.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn offer() -> io::Result<()> {
    let file = offered()?;
    writeln!(io::stdout(), "{} {}", std::process::id(), file.as_raw_fd())?;
    io::stdout().flush()?;
    io::stdin().lock().skip_until(b'\n').map(drop)
}

/// Creates a file in memory, as the software device does.
pub(crate) fn offered() -> io::Result<File> {
    let mut file = File::from(memfd_create("urscope-doctor", MemfdFlags::CLOEXEC)?);
    file.write_all(CONTENT)?;
    Ok(file)
}

/// Takes a descriptor from a process, and reads the file.
pub(crate) fn take(pid: i32, descriptor: RawFd) -> Outcome {
    let pid = Pid::from_raw(pid).ok_or((OPEN, Errno::SRCH))?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| (OPEN, errno))?;
    let taken = pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).map_err(|errno| (GET, errno))?;
    // All processes with the file share its position, so this neither uses nor moves it.
    let mut content = [0; CONTENT.len()];
    match File::from(taken).read_exact_at(&mut content, 0) {
        Ok(()) if content == CONTENT => Ok(()),
        Ok(()) => Err((READ, Errno::BADF)),
        Err(error) => Err((READ, Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    }
}

fn encode(outcome: Outcome) -> String {
    match outcome {
        Ok(()) => "ok".to_owned(),
        Err((step, errno)) => format!("{step} {}", errno.raw_os_error()),
    }
}

/// Decodes the output of [`encode`]; `None` if it is malformed.
pub(crate) fn decode(line: &str) -> Option<Outcome> {
    if line.trim() == "ok" {
        return Some(Ok(()));
    }
    let (name, errno) = line.trim().split_once(' ')?;
    let step = [OPEN, GET, READ].into_iter().find(|step| *step == name)?;
    Some(Err((step, Errno::from_raw_os_error(errno.parse().ok()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_outcome_is_decoded_again() {
        for outcome in [Ok(()), Err((OPEN, Errno::SRCH)), Err((GET, Errno::PERM))] {
            assert_eq!(decode(&encode(outcome)), Some(outcome));
        }
        assert_eq!(decode("what"), None);
    }

    #[test]
    fn a_descriptor_can_be_taken_repeatedly() {
        let file = offered().unwrap();
        let ourselves = std::process::id() as i32;
        let first = take(ourselves, file.as_raw_fd());
        assert_eq!(take(ourselves, file.as_raw_fd()), first);
        assert!(!matches!(first, Err((READ, _))), "{first:?}");
    }

    #[test]
    fn taking_from_a_missing_process_fails() {
        assert_eq!(take(i32::MAX, 0), Err((OPEN, Errno::SRCH)));
    }
}
