//! Creates the trace files of both forms, and reports errors.

use std::{io, ops::RangeInclusive, path::Path};

use urscope_schema::host::owners::{self, Owner, Owners};
use urscope_schema::host::ranks::process_name;
use urscope_schema::trace::process_times::{Notice, TraceState};
use urscope_schema::trace::{Form, file_name, records::Header};

use crate::raw::files::{named_file::NamedFile, plain_file};
use crate::raw::processes::{observer, process};
use crate::raw::{clock, stderr, symbols::modules};
use crate::{command_line, knobs};

/// The pauses after the first failed attempt to grow and at most, in nanoseconds. Each failure doubles the pause.
const RETRY_PAUSES: RangeInclusive<u64> = 10_000_000..=10_000_000_000;

/// The most files of one process: one for each program that it executes by `exec`.
const FILE_LIMIT: u32 = 10_000;

/// The header of this process. Reports problems of the environment, because tracing begins.
pub(super) fn header(forked: bool) -> Header {
    let knobs = knobs::read();
    for complaint in knobs::complaints() {
        stderr::say(&complaint);
    }
    // This process owns the trace and closes it at its end.
    super::pid();
    let job = knobs::job();
    let mut header = process::describe(&knobs.run, forked, job.rank, modules::came_late());
    header.ranks = knobs.ranks.to_string();
    header.ranks_elsewhere = job.elsewhere;
    header.command = command_line::shown(header.command, knobs.command_line);
    header
}

/// Creates the trace file by `make`; `None`, with a message, if that is not possible. `name` is that of a file.
pub(super) fn create<F>(
    form: Form,
    header: &Header,
    make: impl Fn(&Path) -> io::Result<F>,
    name: impl Fn(&F) -> &NamedFile,
) -> Option<F> {
    let directory = &knobs::read().directory;
    let create = || {
        if knobs::makes_directory() {
            plain_file::make_directory(directory)?;
        }
        if let Some(why) = reason_against(directory)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        for attempt in 0..FILE_LIMIT {
            let name = file_name(form, process::name(header), header.pid, header.start, attempt);
            match make(&directory.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for the file is taken"))
    };
    let created = create();
    let made =
        created.as_ref().map(|file| name(file).path().file_name().unwrap_or_default().to_string_lossy().into_owned());
    tell_observer(header, made);
    if let Err(error) = &created {
        // Only `urscope run` has an observer.
        let name_it = if knobs::read().observer.is_empty() { "set URSCOPE_DIR to" } else { "name with --dir" };
        stderr::say(&format!(
            "cannot write a trace into {}: {error}; {name_it} a directory with room that this user can write to; the program continues \
             without a trace",
            directory.display()
        ));
    }
    created.ok()
}

/// Tells `urscope run` the name of the trace that this process has made, or why it could not.
fn tell_observer(header: &Header, made: Result<String, &io::Error>) {
    observer::show(header.pid, if made.is_ok() { TraceState::Made } else { TraceState::Failed });
    let name = &knobs::read().observer;
    // A filter may end the process for a system call that it does not expect.
    if name.is_empty() || header.rights.seccomp != Some(0) {
        return;
    }
    let (trace, untraced) = match made {
        Ok(name) => (name, String::new()),
        Err(error) => {
            let process = process_name(&header.executable, header.pid, header.rank);
            (String::new(), format!("{process} could not write its trace: {error}"))
        }
    };
    let run = header.run.clone();
    let pid_namespace = header.pid_namespace;
    let pid = header.pid;
    let start = header.start;
    let notice = Notice { run, pid_namespace, pid, start, trace, untraced };
    // Nobody receives it if the run has ended, or in another network. Then only less is known of this process.
    let _ = observer::tell(name, &serde_json::to_vec(&notice).unwrap_or_default());
}

/// Why a directory is not used: the owner of it or of its parent is not trusted.
#[inline(never)] // What it needs must not lie on a small stack for longer than it takes.
fn reason_against(directory: &Path) -> io::Result<Option<String>> {
    let owner = |path: &Path| {
        plain_file::status(path).map(|status| Owner { user: status.st_uid, is_system: is_system(&status) })
    };
    let owners = Owners { user: process::user(), root: plain_file::status(Path::new("/"))?.st_uid };
    Ok(owners.object(owner(directory)?, owner(&directory.join(".."))?))
}

/// Whether a directory is one of the system's.
fn is_system(folder: &libc::stat) -> bool {
    let is = |known: libc::stat| (known.st_dev, known.st_ino) == (folder.st_dev, folder.st_ino);
    owners::SYSTEM.iter().any(|path| plain_file::status(Path::new(path)).is_ok_and(is))
}

/// When a file that could not grow tries again: there may be room, or a free descriptor, later.
#[derive(Default)]
pub(super) struct Growth {
    /// When to try again, in nanoseconds of `CLOCK_MONOTONIC`, and the pause before that; 0 if it did not fail.
    next: u64,
    pause: u64,
    /// Whether the user knows that records are lost, or the error that says so.
    is_reported: bool,
    complaint: Option<io::Error>,
}

impl Growth {
    /// Whether the file may be grown now.
    pub(super) fn may_retry(&self) -> bool {
        self.next == 0 || clock::now().0 >= self.next
    }

    /// Whether the last attempt failed.
    pub(super) fn has_failed(&self) -> bool {
        self.next != 0
    }

    /// Registers that the file has grown; true if it could not before.
    pub(super) fn succeeded(&mut self) -> bool {
        self.pause = 0;
        std::mem::replace(&mut self.next, 0) != 0
    }

    /// Registers that the file could not grow. Records until the next attempt are lost.
    #[cold]
    pub(super) fn failed(&mut self, error: io::Error) {
        self.pause = (2 * self.pause).clamp(*RETRY_PAUSES.start(), *RETRY_PAUSES.end());
        self.next = clock::now().0.saturating_add(self.pause).max(1);
        if !std::mem::replace(&mut self.is_reported, true) {
            self.complaint = Some(error);
        }
    }

    /// The first error, once.
    pub(super) fn take_complaint(&mut self) -> Option<io::Error> {
        self.complaint.take()
    }
}

/// Says that records are lost.
pub(super) fn say_lost(path: &Path, error: &io::Error) {
    let why = match error.raw_os_error() {
        Some(libc::EFBIG) => "the process's limit of file size is reached".into(),
        Some(libc::ESTALE) => "another program has truncated or replaced its file".into(),
        _ => error.to_string(),
    };
    stderr::say(&format!(
        "the trace {} cannot grow: {why}; the program continues, and calls are counted but not recorded until it can",
        path.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_tried_again_after_longer_and_longer_pauses() {
        let mut growth = Growth::default();
        assert!(growth.may_retry() && !growth.succeeded());
        let error = io::Error::other("full");
        growth.failed(error);
        let first = growth.pause;
        growth.failed(io::Error::other("full"));
        assert!(growth.take_complaint().is_some() && growth.take_complaint().is_none());
        assert!(growth.has_failed() && !growth.may_retry() && growth.pause == 2 * first);
        assert!(growth.succeeded() && !growth.has_failed() && growth.may_retry());
    }
}
