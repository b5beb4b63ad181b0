//! The trace file of this process: created, appended to, and closed so that it is strict JSON.
//!
//! An error here must never reach the program: it is reported once, and records are counted as lost.

use std::{io, ops::RangeInclusive, path::PathBuf, sync::atomic::Ordering};

use urscope_schema::trace::{
    records::{EntryPoint, Gap},
    write::{self, End},
};

use crate::{
    command_line, knobs,
    raw::{clock, pages::Pages, plain_file, process, stderr},
};

/// The bytes that are kept free for the footer, so that a file on a full disk can still be closed.
const RESERVE: u64 = 16 << 10;

/// The most files of one process: one for each program that it executes by `exec`.
const AGAIN: u32 = 10_000;

/// The pause after the first attempt to grow that failed, and the longest one, in nanoseconds. Each failure doubles it.
const PAUSES: RangeInclusive<u64> = 10_000_000..=10_000_000_000;

/// The file; without pages where it could not be created.
pub(super) struct TraceFile {
    pages: Option<Pages>,
    /// Where the file cannot grow at the moment.
    stalled: Option<Stalled>,
    /// Whether the user knows that records are lost.
    said: bool,
    closed: bool,
}

/// A file that could not grow: there may be room, or a free descriptor, later.
struct Stalled {
    /// When to try again, in nanoseconds of `CLOCK_MONOTONIC`.
    next: u64,
    /// The pause before that.
    pause: u64,
}

impl TraceFile {
    /// Creates the file and writes the header and the entry points so far.
    pub(super) fn begin(forked: bool, entry_points: &[EntryPoint]) -> Self {
        let knobs = knobs::read();
        for complaint in knobs::complaints() {
            stderr::say(&complaint);
        }
        let mut header = process::describe(&knobs.run, forked, knobs::rank());
        header.command = command_line::shown(header.command, knobs.command_line);
        let name = process::name(&header);
        let mut beginning = write::start(header.pid, name, &format!("{}-{}-{}", header.run, header.pid, header.start));
        beginning.extend(write::record(header.pid, &header));
        beginning.extend(entry_points.iter().flat_map(|entry_point| write::record(header.pid, entry_point)));

        let pages = create(|again| write::file_name(name, header.pid, header.start, again));
        if let Err(error) = &pages {
            stderr::say(&format!(
                "cannot write a trace into {}: {error}; set URSCOPE_DIR to a directory with room that this user can write \
                 to; the program continues without a trace",
                knobs.directory.display()
            ));
        }
        let mut file = Self { pages: pages.ok(), stalled: None, said: false, closed: false };
        file.write(&beginning);
        file
    }

    /// The path, if the file could be created.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.pages.as_ref().map(|pages| pages.path().into())
    }

    /// Appends a record; false if it could not. Where the process has `ended`, the file is closed again behind it.
    pub(super) fn append(&mut self, bytes: &[u8], ended: Option<&str>, footer: impl Fn(&str) -> End) -> bool {
        if let Some(how) = ended {
            if !self.closed {
                self.end(&footer(how));
            }
            let Some(pages) = &mut self.pages else { return false };
            return self.stalled.is_none()
                && pages.append_closed(bytes, footer(how).bytes().unwrap_or_default()).is_ok();
        }
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        if self.stalled.as_ref().is_some_and(|stalled| clock::now().0 < stalled.next) {
            return false;
        }
        let Some(pages) = &mut self.pages else { return false };
        while bytes.len() as u64 + RESERVE > pages.room() {
            if let Err(error) = pages.grow() {
                self.stall(&error);
                return false;
            }
        }
        if self.stalled.take().is_some() {
            // The process may be killed before it can write a footer.
            let lost = super::LOST.load(Ordering::Relaxed);
            pages.append(&write::record(super::pid(), &Gap { lost }));
        }
        pages.append(bytes)
    }

    /// Waits with the next attempt to grow. What is to be recorded until then is lost.
    #[cold]
    fn stall(&mut self, error: &io::Error) {
        let pause = self.stalled.as_ref().map_or(*PAUSES.start(), |stalled| (2 * stalled.pause).min(*PAUSES.end()));
        self.stalled = Some(Stalled { next: clock::now().0.saturating_add(pause), pause });
        if let Some(pages) = self.pages.as_ref().filter(|_| !self.said) {
            self.said = true;
            stderr::say(&format!(
                "the trace {} cannot grow: {error}; the program continues, and calls are counted but not recorded until it can",
                pages.path().display()
            ));
        }
    }

    /// Closes the file with `footer`.
    pub(super) fn end(&mut self, footer: &End) {
        self.closed = true;
        let footer = footer.bytes().unwrap_or_default();
        let Some(pages) = &mut self.pages else { return };
        if pages.close(footer).is_err() {
            // The file cannot be truncated (its directory may have become unreachable), but its mapping can still be written to.
            pages.append(footer);
        }
    }

    /// Leaves the file to the parent of a forked child.
    pub(super) fn abandon(self) {
        if let Some(pages) = self.pages {
            pages.abandon();
        }
    }
}

/// Whether nobody but `user` and root can replace the files of a directory that `user` makes: it belongs to one of the two, or everyone
/// can only remove their own files in it.
fn is_safe(owner: u32, mode: u32, user: u32) -> bool {
    owner == user || owner == 0 || mode & libc::S_ISVTX != 0
}

fn create(name: impl Fn(u32) -> String) -> io::Result<Pages> {
    let directory = &knobs::read().directory;
    plain_file::make_directory(directory)?;
    let status = plain_file::status(directory)?;
    if !is_safe(status.st_uid, status.st_mode, process::user()) {
        let why = format!("it belongs to the user {}, who could replace the traces in it", status.st_uid);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    for again in 0..AGAIN {
        match Pages::create(&directory.join(name(again))) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for the file is taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_somebody_else_is_not_used() {
        assert!(is_safe(7, 0o755, 7) && is_safe(0, 0o777, 7) && is_safe(8, 0o1777, 7));
        assert!(!is_safe(8, 0o777, 7) && !is_safe(8, 0o2775, 7) && !is_safe(8, 0o777, 0));
    }
}
