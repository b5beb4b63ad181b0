//! The Chrome form: lines of JSON, appended under a lock. The closed file is strict JSON.
//!
//! An error never reaches the program: it is reported once, and records are counted as lost.

use std::{path::Path, sync::atomic::Ordering};

use urscope_schema::trace::chrome::write::{self, End, Line};
use urscope_schema::trace::{Form, chrome::write::gap};

use super::file::{self, Growth};
use super::{ENTRY_POINTS, LOST, SIZE, count_lost, footer};
use crate::raw::{processes::process, signals::interruptions, trace_file::pages::Pages};

/// The bytes that are reserved for the footer, so that a file on a full disk can be closed.
const RESERVE: u64 = 16 << 10;

/// Appends a line, which `fill` formats.
#[inline]
pub(super) fn append_line(fill: impl FnOnce(&mut Line)) {
    let mut line = Line::default();
    fill(&mut line);
    // A line has room for the longest record.
    if let Some(bytes) = line.bytes() {
        append(bytes);
    }
}

#[inline]
pub(super) fn append(bytes: &[u8]) {
    if !append_remark(bytes) {
        count_lost();
    }
}

/// Appends a record; false if that fails. The loss of one that no judgement needs is not counted.
#[inline]
pub(super) fn append_remark(bytes: &[u8]) -> bool {
    super::with_file().is_some_and(|mut state| {
        let ended = state.ended;
        state.chrome().is_some_and(|file| file.append(bytes, ended))
    })
}

/// The number of records that are lost so far.
fn gap_line(pid: u32) -> Line {
    let mut line = Line::default();
    line.gap(pid, LOST.get());
    line
}

/// The trace file; without pages if it could not be created.
pub(super) struct ChromeFile {
    pub(super) pages: Option<Pages>,
    pub(super) growth: Growth,
    closed: bool,
}

impl ChromeFile {
    /// Creates the file and writes the header and the entry points so far.
    pub(super) fn begin(forked: bool) -> Self {
        let header = file::header(forked);
        let run = format!("{}-{}-{}", header.run, header.pid, header.start);
        let mut beginning = write::start(header.pid, process::name(&header), &run);
        beginning.extend(write::record(header.pid, &header));
        beginning.extend(gap_line(header.pid).bytes().unwrap_or_default());
        // The fields are followed by the bracket of the record.
        let fields = (beginning.len() - gap(0).len() - 1) as u64;
        if let Some(entry_points) = ENTRY_POINTS.get() {
            beginning.extend(entry_points.iter().flat_map(|entry_point| write::record(header.pid, entry_point)));
        }
        let make = |path: &Path| {
            let mut pages = Pages::create(path)?;
            while beginning.len() as u64 > pages.room() {
                pages.grow()?;
            }
            pages.append(&beginning);
            pages.name.publish()?;
            Ok(pages)
        };
        let pages = file::create(Form::Chrome, &header, make, |pages| &pages.name);
        if let Some(pages) = &pages {
            // Without it, the footer has the number.
            let _ = LOST.keep_in(&pages.name, fields);
        }
        Self { pages, growth: Growth::default(), closed: false }
    }

    /// Appends a record; false if that fails. If the process has `ended`, the file is closed again after it.
    fn append(&mut self, bytes: &[u8], ended: Option<&str>) -> bool {
        match ended {
            None => self.write(bytes),
            Some(how) => self.append_after_end(bytes, how),
        }
    }

    /// A function of its own, because footers take several KiB of the stack.
    #[cold]
    #[inline(never)]
    fn append_after_end(&mut self, bytes: &[u8], how: &str) -> bool {
        let _held_off = interruptions::hold_off();
        if !self.closed {
            self.end(&footer(how));
        }
        let Some(pages) = &mut self.pages else { return false };
        !self.growth.has_failed() && pages.append_closed(bytes, footer(how).bytes().unwrap_or_default()).is_ok()
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(pages) = &mut self.pages else { return false };
        let wanted = bytes.len() as u64 + RESERVE;
        // After a lost record, shorter ones are lost, too, until the file grows: they may refer to it.
        if wanted > pages.room() || self.growth.has_failed() {
            let _held_off = interruptions::hold_off();
            if !self.growth.may_retry() {
                return false;
            }
            loop {
                if let Err(error) = pages.grow() {
                    self.growth.failed(error);
                    return false;
                }
                if wanted <= pages.room() {
                    break;
                }
            }
            SIZE.store(pages.used(), Ordering::Relaxed);
            if self.growth.succeeded() {
                // For those who follow the file.
                pages.append(gap_line(super::pid()).bytes().unwrap_or_default());
            }
        }
        pages.append(bytes)
    }

    /// Closes the file with `footer`.
    pub(super) fn end(&mut self, footer: &End) {
        self.closed = true;
        let footer = footer.bytes().unwrap_or_default();
        let Some(pages) = &mut self.pages else { return };
        if pages.close(footer).is_err() {
            // The file cannot be opened again (its directory may be unreachable), but its mapping is still writable.
            pages.append(footer);
        }
    }

    /// Unmaps the parent's file in a forked child.
    pub(super) fn abandon(self) {
        if let Some(pages) = self.pages {
            pages.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_follows_a_lost_record_is_lost_until_the_file_grows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut pages = Pages::create(&path).unwrap();
        pages.name.publish().unwrap();
        let mut file = ChromeFile { pages: Some(pages), growth: Growth::default(), closed: false };
        let room = |file: &ChromeFile| file.pages.as_ref().unwrap().room();
        while room(&file) > RESERVE + 100 {
            let bytes = (room(&file) - RESERVE - 50).min(1000);
            assert!(file.write(&vec![b'x'; bytes as usize]));
        }
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        assert!(!file.write(&[b'x'; 200]), "the file cannot grow");
        let before = room(&file);
        assert!(!file.write(b"x") && room(&file) == before);
        fs::rename(&elsewhere, &path).unwrap();
        while !file.write(b"x") {
            std::thread::yield_now();
        }
        assert!(room(&file) > before);
    }
}
