//! The binary form: each thread appends to its own chunk of the file. A thread that needs another chunk takes the lock.
//!
//! An error never reaches the program: it is reported once, and records are counted as lost.

#![expect(clippy::inline_always, reason = "the row of a function decides which values there are")]

use std::{io, path::Path, sync::atomic::Ordering};

use urscope_schema::api::Function;
use urscope_schema::call::{Nanos, Values};
use urscope_schema::trace::fxt::write::{self, Sink};
use urscope_schema::trace::fxt::{HEAD, kind_of};
use urscope_schema::trace::{Form, chrome::write::End, records::Header};

use super::file::{self, Growth};
use super::{ENTRY_POINTS, LOST, PROCESS_TRACE, ProcessTrace, SIZE, count_lost, footer, pid};
use crate::raw::trace_file::chunks::call_words::CallWords;
use crate::raw::trace_file::chunks::{self, Appendable, Appended, Chunks, Short};
use crate::raw::{processes::process, signals::interruptions, threads::thread};

/// Appends a record of the call with this number, which `make` makes; 0 for one that says nothing to the next record.
pub(super) fn append_call(call: u64, make: impl FnOnce(&mut CallWords) -> Option<u64>) {
    let mut words = CallWords::empty();
    let first = make(&mut words);
    let words = words.with_first(first).unwrap_or_default();
    let append = || chunks::append_call(words, call, None);
    if append() != Appended::Yes && !append_to_new_chunk(&append) {
        count_lost();
    }
}

struct ThreadNameRecord<'a> {
    pid: u32,
    name: &'a str,
}

impl Appendable for ThreadNameRecord<'_> {
    fn words(&self, to: &mut impl Sink) -> Option<u64> {
        Some(write::thread_name(self.pid, thread::id(), self.name, to))
    }
}

/// A footer, with its fields as JSON.
struct FooterRecord<'a>(&'a str);

impl Appendable for FooterRecord<'_> {
    fn words(&self, to: &mut impl Sink) -> Option<u64> {
        write::footer(self.0, to)
    }
}

/// The number of records that are lost so far.
struct GapRecord;

impl Appendable for GapRecord {
    fn words(&self, to: &mut impl Sink) -> Option<u64> {
        write::gap(LOST.get(), to)
    }
}

/// Appends the record of a call that begins, if it can be short and fits into this thread's chunk.
#[inline(always)]
pub(super) fn append_short_enter(function: Function, call: u64, time: Nanos, values: &Values) -> bool {
    let mut words = CallWords::empty();
    let first = write::short_enter(function, time, values, &mut words);
    append_short(words.with_first(first), call, Short { before: call - 1, kind: kind_of(function, true) })
}

/// [`append_short_enter`] in one copy, for functions that the compiler does not know.
#[inline(never)]
pub(super) fn append_any_enter(function: Function, call: u64, time: Nanos, values: &Values) -> bool {
    append_short_enter(function, call, time, values)
}

/// [`append_short_exit`] in one copy, for functions that the compiler does not know.
#[inline(never)]
pub(super) fn append_any_exit(function: Function, call: u64, time: Nanos, values: Option<&Values>) -> bool {
    append_short_exit(function, call, time, values)
}

/// Appends the record of a call that has returned success, if it can be short and fits into this thread's chunk.
#[inline(always)]
pub(super) fn append_short_exit(function: Function, call: u64, time: Nanos, values: Option<&Values>) -> bool {
    let mut words = CallWords::empty();
    let first = match values {
        Some(values) => write::short_exit(function, time, values, &mut words),
        None => write::short_exit(function, time, &Values::NONE, &mut words),
    };
    append_short(words.with_first(first), call, Short { before: call, kind: kind_of(function, false) })
}

#[inline(always)]
fn append_short(words: Option<&[u64]>, call: u64, short: Short) -> bool {
    words.is_some_and(|words| chunks::append_call(words, call, Some(short)) == Appended::Yes)
}

/// Appends an encoded record; no words stand for one that is too long.
pub(super) fn append_words(words: &[u64]) {
    if !append_remark(words) {
        count_lost();
    }
}

/// Appends an encoded record; false if that fails. The loss of one that no judgement needs is not counted.
pub(super) fn append_remark(words: &[u64]) -> bool {
    chunks::append(words) == Appended::Yes || append_to_new_chunk(&|| chunks::append(words))
}

/// Gives this thread another chunk, and appends there; false if that fails.
#[cold]
fn append_to_new_chunk(append: &dyn Fn() -> Appended) -> bool {
    let _held_off = interruptions::hold_off();
    let mut appended = append();
    if appended == Appended::NoRoom {
        // Before the lock, because it may allocate.
        thread::at_end(thread::Leaves::Trace, leave_chunk);
        if let Some(mut state) = super::with_file() {
            appended = append_with_file(&mut state, append);
        }
    }
    appended == Appended::Yes
}

/// The thread may have got a chunk with the file.
fn append_with_file(state: &mut ProcessTrace, append: &dyn Fn() -> Appended) -> Appended {
    let mut appended = append();
    let ended = state.ended;
    if appended == Appended::NoRoom
        && let Some(file) = state.binary()
        && file.renew()
    {
        appended = append();
        if let Some(how) = ended {
            rewrite_footer(file, how);
        }
    }
    appended
}

/// A function of its own, because a footer takes several KiB of the stack.
#[inline(never)]
fn rewrite_footer(file: &mut BinaryFile, how: &str) {
    file.end(&footer(how));
}

/// The trace file; without chunks if it could not be created.
pub(super) struct BinaryFile {
    pub(super) chunks: Option<Chunks>,
    pub(super) growth: Growth,
}

impl BinaryFile {
    /// Creates the file and writes the header and the entry points so far.
    pub(super) fn begin(forked: bool) -> Self {
        let header = file::header(forked);
        thread::at_end(thread::Leaves::Trace, leave_chunk);
        let make = |path: &Path| {
            let mut chunks = Chunks::create(path)?;
            let fields_of_gap = write_beginning(&mut chunks, &header)?;
            chunks.name.publish()?;
            // Without it, the footer has the number.
            let _ = LOST.keep_in(&chunks.name, fields_of_gap);
            Ok(chunks)
        };
        let created = file::create(Form::Binary, &header, make, |chunks| &chunks.name);
        Self { chunks: created, growth: Growth::default() }
    }

    /// Gives this thread another chunk; false if there is none.
    fn renew(&mut self) -> bool {
        let Some(chunks) = &mut self.chunks else { return false };
        if !self.growth.may_retry() {
            return false;
        }
        match chunks.renew(pid(), thread::id(), &[]) {
            Ok(()) => {
                SIZE.store(chunks.used(), Ordering::Relaxed);
                if self.growth.succeeded() {
                    // For those who follow the file.
                    chunks::append_with(&GapRecord);
                }
                name_thread(pid());
                true
            }
            Err(error) => {
                self.growth.failed(error);
                false
            }
        }
    }

    /// Writes a footer and truncates the file after it.
    pub(super) fn end(&mut self, footer: &End) {
        let ends = FooterRecord(footer.args().unwrap_or_default());
        let Some(chunks) = &mut self.chunks else { return };
        chunks.begin_end();
        if chunks::append_with(&ends) == Appended::NoRoom && chunks.renew(pid(), thread::id(), &[]).is_ok() {
            chunks::append_with(&ends);
        }
        // A file that cannot be truncated has free space after the records.
        let _ = chunks.close();
    }
}

/// Writes the header and the entry points so far. Returns the offset of the fields of the gap record.
fn write_beginning(chunks: &mut Chunks, header: &Header) -> io::Result<u64> {
    let beginning = write::beginning(header.pid, process::name(header));
    chunks.renew(header.pid, thread::id(), &beginning)?;
    let without_command = || write::record(&Header { command: Vec::new(), ..header.clone() });
    let record = write::record(header).or_else(without_command);
    let record = record.unwrap_or_default();
    chunks::append(&record);
    // The fields of the next record follow its first word.
    let fields = (beginning.len() + HEAD + record.len() + 1) * size_of::<u64>();
    chunks::append_with(&GapRecord);
    for entry_point in ENTRY_POINTS.get().iter().flat_map(|known| known.iter()) {
        let words = write::record(entry_point).unwrap_or_default();
        if chunks::append(&words) == Appended::NoRoom && chunks.renew(header.pid, thread::id(), &[]).is_ok() {
            chunks::append(&words);
        }
    }
    name_thread(header.pid);
    Ok(fields as u64)
}

/// Records the name of this thread once.
fn name_thread(pid: u32) {
    if let Some(name) = thread::name_once() {
        chunks::append_with(&ThreadNameRecord { pid, name: &name.text() });
    }
}

/// Returns the chunk of a thread that ends, for reuse.
fn leave_chunk() {
    thread::leave_counts();
    if let Some(mut state) = PROCESS_TRACE.get().get()
        && let Some(super::File::Binary(file)) = &mut state.file
        && let Some(chunks) = &mut file.chunks
    {
        chunks.leave_chunk();
    }
}

/// Forgets the parent's file, which is not mapped in a forked child.
pub(super) fn after_fork_in_child() {
    chunks::forget();
}
