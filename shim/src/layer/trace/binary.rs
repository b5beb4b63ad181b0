//! The binary form: each thread appends to its own chunk of the file. A thread that needs another chunk takes the lock.
//!
//! An error never reaches the program: it is reported once, and records are counted as lost.

use std::{io, path::Path};

use urscope_schema::{
    call::{Enter, Exit},
    trace::{
        Form,
        fxt::{
            Before, HEAD,
            write::{self, Sink},
        },
        records::{Gap, Header},
        write::End,
    },
};

use super::{
    ENTRY_POINTS, PROCESS_TRACE, count_lost,
    file::{self, Growth},
    footer, pid,
};
use crate::raw::{
    chunks::{self, Appended, Chunks, Record},
    interruptions,
    named_file::MappedByte,
    process, thread,
};

/// The record of a call that begins.
struct EnterRecord<'a>(&'a Enter);

/// The record of a call that returns.
struct ExitRecord<'a>(&'a Exit);

/// The short record of a call that begins: it omits what the record before contains. Most records are short.
struct ShortEnterRecord<'a>(&'a Enter);

/// The short record of a call that returns.
struct ShortExitRecord<'a>(&'a Exit);

/// The record of a call that begins inside of another one.
struct InnerEnterRecord<'a>(&'a Enter);

/// The record of a call that returns inside of another one.
struct InnerExitRecord<'a>(&'a Exit);

/// The name of this thread.
struct ThreadNameRecord<'a> {
    pid: u32,
    name: &'a str,
}

/// A footer, with its fields as JSON.
struct FooterRecord<'a>(&'a str);

impl Record for EnterRecord<'_> {
    fn words(&self, before: Before, to: &mut impl Sink) -> Option<u64> {
        write::enter(self.0, before, to)
    }

    #[inline]
    fn for_next(&self, before: Before) -> Option<Before> {
        Some(before.behind_enter(self.0))
    }
}

impl Record for ExitRecord<'_> {
    fn words(&self, before: Before, to: &mut impl Sink) -> Option<u64> {
        write::exit(self.0, before, to)
    }

    #[inline]
    fn for_next(&self, before: Before) -> Option<Before> {
        Some(before.behind_exit(self.0))
    }
}

impl Record for ShortEnterRecord<'_> {
    #[inline]
    fn fits(&self, before: Before) -> bool {
        write::is_short_enter(self.0, before)
    }

    #[expect(clippy::inline_always, reason = "the row of a function decides which values there are")]
    #[inline(always)]
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        write::short_enter(self.0, to)
    }

    #[inline]
    fn for_next(&self, before: Before) -> Option<Before> {
        Some(before.behind_enter(self.0))
    }
}

impl Record for ShortExitRecord<'_> {
    #[inline]
    fn fits(&self, before: Before) -> bool {
        write::is_short_exit(self.0, before)
    }

    #[expect(clippy::inline_always, reason = "the row of a function decides which values there are")]
    #[inline(always)]
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        write::short_exit(self.0, to)
    }

    #[inline]
    fn for_next(&self, before: Before) -> Option<Before> {
        Some(before.behind_exit(self.0))
    }
}

impl Record for InnerEnterRecord<'_> {
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        write::inner_enter(self.0, to)
    }
}

impl Record for InnerExitRecord<'_> {
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        write::inner_exit(self.0, to)
    }
}

impl Record for ThreadNameRecord<'_> {
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        Some(write::thread_name(self.pid, thread::id(), self.name, to))
    }
}

impl Record for FooterRecord<'_> {
    fn words(&self, _: Before, to: &mut impl Sink) -> Option<u64> {
        write::footer(self.0, to)
    }
}

/// Appends the record of a call that begins, if it can be short and fits into this thread's chunk.
#[expect(clippy::inline_always, reason = "the row of a function decides which values there are")]
#[inline(always)]
pub(super) fn append_short_enter(enter: &Enter) -> bool {
    chunks::append_with(&ShortEnterRecord(enter)) == Appended::Yes
}

/// Appends the record of a call that returns, if it can be short and fits into this thread's chunk.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
pub(super) fn append_short_exit(exit: &Exit) -> bool {
    chunks::append_with(&ShortExitRecord(exit)) == Appended::Yes
}

/// Appends the record of a call that begins.
pub(super) fn record_enter(enter: &Enter) {
    append(&EnterRecord(enter));
}

/// Appends the record of a call that returns.
pub(super) fn record_exit(exit: &Exit) {
    append(&ExitRecord(exit));
}

/// Appends the record of a call that begins inside of another one.
pub(super) fn record_inner_enter(enter: &Enter) {
    append(&InnerEnterRecord(enter));
}

/// Appends the record of a call that returns inside of another one.
pub(super) fn record_inner_exit(exit: &Exit) {
    append(&InnerExitRecord(exit));
}

fn append(record: &impl Record) {
    if chunks::append_with(record) != Appended::Yes {
        append_to_new_chunk(&|| chunks::append_with(record));
    }
}

/// Appends an encoded record; no words stand for one that is too long.
pub(super) fn append_words(words: &[u64]) {
    if chunks::append(words) != Appended::Yes {
        append_to_new_chunk(&|| chunks::append(words));
    }
}

/// Gives this thread another chunk, and appends there.
#[cold]
fn append_to_new_chunk(append: &dyn Fn() -> Appended) {
    let _held_off = interruptions::hold_off();
    let mut appended = append();
    if appended == Appended::NoRoom
        && let Some(mut state) = PROCESS_TRACE.get().get()
    {
        let ended = state.ended;
        if let Some(file) = state.binary()
            && file.renew()
        {
            appended = append();
            if let Some(how) = ended {
                rewrite_footer(file, how);
            }
        }
    }
    if appended != Appended::Yes {
        count_lost();
    }
}

/// A function of its own, because a footer takes several KiB of the stack.
#[inline(never)]
fn rewrite_footer(file: &mut BinaryFile, how: &str) {
    file.end(&footer(how));
}

/// The trace file; without chunks if it could not be created.
pub(super) struct BinaryFile {
    chunks: Option<Chunks>,
    /// The digit that shows whether records are lost.
    loss: Option<MappedByte>,
    growth: Growth,
}

impl BinaryFile {
    /// Creates the file and writes the header and the entry points so far.
    pub(super) fn begin(forked: bool) -> Self {
        let header = file::header(forked);
        let created = file::create(Form::Binary, &header, |path| {
            let mut chunks = Chunks::create(path)?;
            let digit = write_beginning(&mut chunks, &header)?;
            chunks.publish()?;
            Ok((chunks, digit))
        });
        let loss = created.as_ref().and_then(|(chunks, digit)| chunks.map_byte(*digit).ok());
        Self { chunks: created.map(|(chunks, _)| chunks), loss, growth: Growth::default() }
    }

    /// Marks the file as incomplete; false if that is not possible.
    pub(super) fn mark_lost(&self) -> bool {
        self.chunks
            .as_ref()
            .zip(self.loss.as_ref())
            .is_some_and(|(chunks, digit)| chunks.write_mapped(digit, super::SOME_LOST))
    }

    /// The path, if the file could be created.
    pub(super) fn path(&self) -> Option<&Path> {
        self.chunks.as_ref().map(Chunks::path)
    }

    /// Gives this thread another chunk; false if there is none.
    fn renew(&mut self) -> bool {
        let Some(chunks) = &mut self.chunks else { return false };
        if !self.growth.may_retry() {
            return false;
        }
        match chunks.renew(pid(), thread::id(), &[]) {
            Ok(()) => {
                if self.growth.succeeded() {
                    // The process may be killed before it can write a footer.
                    chunks::append(&write::record(&super::gap()).unwrap_or_default());
                }
                name_thread(pid());
                true
            }
            Err(error) => {
                self.growth.failed(chunks.path(), &error);
                false
            }
        }
    }

    /// Writes a footer and truncates the file after it.
    pub(super) fn end(&mut self, footer: &End) {
        let ends = FooterRecord(footer.args().unwrap_or_default());
        if chunks::append_with(&ends) == Appended::NoRoom && self.renew() {
            chunks::append_with(&ends);
        }
        if let Some(chunks) = &mut self.chunks {
            // A file that cannot be truncated has free space after the records.
            let _ = chunks.close();
        }
    }
}

/// Writes the header and the entry points so far. Returns the offset of the digit that shows whether records are lost.
fn write_beginning(chunks: &mut Chunks, header: &Header) -> io::Result<u64> {
    let beginning = write::beginning(header.pid, process::name(header));
    chunks.renew(header.pid, thread::id(), &beginning)?;
    let without_command = || write::record(&Header { command: Vec::new(), ..header.clone() });
    let record = write::record(header).or_else(without_command);
    let record = record.unwrap_or_default();
    chunks::append(&record);
    // The text of the record follows its first word.
    let text = (beginning.len() + HEAD + record.len() + 1) * size_of::<u64>();
    chunks::append(&write::record(&Gap { lost: 0 }).unwrap_or_default());
    for entry_point in ENTRY_POINTS.get().iter().flat_map(|known| known.iter()) {
        let words = write::record(entry_point).unwrap_or_default();
        if chunks::append(&words) == Appended::NoRoom && chunks.renew(header.pid, thread::id(), &[]).is_ok() {
            chunks::append(&words);
        }
    }
    name_thread(header.pid);
    Ok((text + super::LOSS_DIGIT) as u64)
}

/// Records the name of this thread once, and registers that its chunk is reused when it ends.
fn name_thread(pid: u32) {
    if let Some(name) = thread::name_once() {
        chunks::append_with(&ThreadNameRecord { pid, name: &name.text() });
        thread::at_end(leave_chunk);
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
