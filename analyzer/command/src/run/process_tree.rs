//! Runs a program, and waits for everything that it starts.
//!
//! urscope becomes the subreaper of its descendants, so it knows when the last one has ended, also if the parents of
//! that one ended earlier. It must never end a process.

use std::process::{self, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{error::Error, io, os::unix::process::ExitStatusExt as _};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_current_process_group, kill_process, set_child_subreaper, wait};

use urscope_schema::counted;

use super::descendants::{Descendant, descendants};
use super::signals::{self, Event, MissedBy};
use crate::{output::complain, program::NoProgram};

/// How long after the end of the program the remaining processes are reported.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// How long processes that Ctrl-C ends have time to write their last record.
const LINGER: Duration = Duration::from_millis(300);

const NAMED: usize = 5;

/// The exit code, as in a shell: 128 plus the number of a signal.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()).try_into().unwrap_or(u8::MAX)
}

#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The number that the program had.
    pub(crate) program: u32,
    pub(crate) status: ExitStatus,
    /// The processes that were still running and are not waited for.
    pub(crate) left: Vec<Descendant>,
}

/// Runs a program until it and all processes that it started have ended. A signal ends the waiting for these, and so
/// does `limit`, which counts from the end of the program.
pub(crate) fn run(command: &mut Command, limit: Option<Duration>) -> Result<End, Box<dyn Error>> {
    let failed = |what| move |error: io::Error| format!("the system does not let urscope {what}: {error}");
    let itself = Pid::from_raw(process::id() as i32);
    set_child_subreaper(itself).map_err(io::Error::from).map_err(failed("wait for all that the program starts"))?;
    let events = signals::receive().map_err(failed("receive signals"))?;
    let child = command.spawn().map_err(|error| NoProgram::start(command.get_program(), &error))?;
    let mut reaper = Reaper {
        root: child.id(),
        status: None,
        hangs_up: false,
        announced: false,
        deadline: None,
        limit,
        until: None,
    };
    Ok(reaper.keep(&events).map_err(failed("wait for the program"))?)
}

struct Reaper {
    root: u32,
    status: Option<ExitStatus>,
    /// Whether the terminal was closed that the program would lead the session of.
    hangs_up: bool,
    announced: bool,
    /// When to announce that urscope waits, or, after the signal that ends the waiting, to leave.
    deadline: Option<Instant>,
    limit: Option<Duration>,
    /// When the limit is reached; known from the end of the program on.
    until: Option<Instant>,
}

impl Reaper {
    fn keep(&mut self, events: &Receiver<Event>) -> io::Result<End> {
        let mut leaving = false;
        loop {
            match self.next(events)? {
                Some(Event::Child) => {
                    let all_gone = self.reap()?;
                    if let (true, Some(status)) = (all_gone, self.status) {
                        return Ok(End { program: self.root, status, left: Vec::new() });
                    }
                }
                Some(Event::Signal { number, missed_by }) => match self.status {
                    None => self.forward(number, missed_by),
                    // The program has ended, so the signal is for urscope. A second one ends the waiting at once.
                    Some(status) if leaving => return Ok(self.leave(status)),
                    Some(_) => {
                        leaving = true;
                        self.deadline = Some(Instant::now() + LINGER);
                    }
                },
                None => match self.status {
                    Some(status) if leaving || self.until.is_some_and(|until| until <= Instant::now()) => {
                        return Ok(self.leave(status));
                    }
                    _ => self.announce(),
                },
            }
        }
    }

    /// The next event, or `None` at the deadline.
    fn next(&self, events: &Receiver<Event>) -> io::Result<Option<Event>> {
        let Some(deadline) = self.deadline else {
            return events.recv().map(Some).map_err(io::Error::other);
        };
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error @ RecvTimeoutError::Disconnected) => Err(io::Error::other(error)),
        }
    }

    /// Reaps all processes that have ended. Returns whether none is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_pid() as u32 == self.root {
                        self.status = Some(ExitStatus::from_raw(status.as_raw()));
                        if self.hangs_up {
                            // As the kernel does at the end of the leader of a session.
                            let _ = kill_current_process_group(Signal::HUP);
                        }
                        let now = Instant::now();
                        self.until = self.limit.map(|limit| now + limit);
                        self.deadline =
                            Some(self.until.map_or(now + NOTICE_AFTER, |until| until.min(now + NOTICE_AFTER)));
                    }
                }
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Forwards a signal to the program, which has not been reaped yet, so its number is still valid.
    fn forward(&mut self, number: i32, missed_by: MissedBy) {
        self.hangs_up |= missed_by == MissedBy::Group;
        if missed_by != MissedBy::Nobody
            && let (Some(pid), Some(signal)) = (Pid::from_raw(self.root as i32), Signal::from_named_raw(number))
        {
            // The program may have ended in the meantime.
            let _ = kill_process(pid, signal);
        }
    }

    /// Reports once which processes are waited for.
    fn announce(&mut self) {
        self.deadline = self.until;
        let others = descendants(process::id());
        if !self.announced && !others.is_empty() {
            self.announced = true;
            complain(format_args!(
                "the program has ended; waiting for {} that it started ({}); Ctrl-C, or SIGTERM to {}, ends the waiting",
                counted(others.len(), "process"),
                named(&others),
                process::id()
            ));
        }
    }

    fn leave(&self, status: ExitStatus) -> End {
        End { program: self.root, status, left: descendants(process::id()) }
    }
}

/// The numbers and names of the first processes.
pub(crate) fn named(processes: &[Descendant]) -> String {
    let mut names: Vec<_> =
        processes.iter().take(NAMED).map(|process| format!("{} {}", process.pid, process.name)).collect();
    if processes.len() > NAMED {
        names.push("…".into());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        // The code of an exit is in the second byte.
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn a_long_list_of_processes_is_shortened() {
        let processes: Vec<_> = (1..=7).map(|pid| Descendant { pid, name: "x".into() }).collect();
        assert_eq!(named(&processes), "1 x, 2 x, 3 x, 4 x, 5 x, …");
    }
}
