//! A file that grows by mapped chunks, to which threads write without a lock.
//!
//! The file consists of chunks of [`CHUNK_BYTES`], each of which belongs to one thread at a time. Unwritten words are
//! [`UNWRITTEN`], so the file can be read at any time. A record is appended in three steps: one instruction claims
//! its space in the thread's position, a first word with the length of the space is stored, and the first word of the
//! record replaces it after all others. So a signal handler may append on the same thread at any instruction, and a
//! killed process leaves only whole records. As in [`super::pages`], no descriptor stays open.

mod pieces;

use std::{fs::File, io, ops::Range, path::Path};

use urscope_schema::trace::fxt::{Before, CHUNK, CHUNK_BYTES, HEAD, UNWRITTEN, hole, write};

use self::pieces::Pieces;
use super::super::files::{named_file::NamedFile, plain_file};
use super::super::signals::sync::{self, AtomicU32, Cell, Ordering, compiler_fence};
use super::super::threads::variables;

/// The file grows to the next multiple of this by one mapping: the size of a large page, for kernels that have them
/// for files.
const PIECE: u64 = 2 << 20;

/// The first size of the file: enough for a process that shares nothing.
const FIRST_PIECE: u64 = 4 * CHUNK_BYTES;

/// The second size: enough for most processes.
const SECOND_PIECE: u64 = 1 << 20;

const WORD: usize = size_of::<u64>();

/// The distance in bytes from the end of a record at which memory for the next ones is prefetched.
const PREFETCH_DISTANCE: usize = 128;

/// A position after every end.
const NO_POSITION: usize = usize::MAX / 2;

/// The contents of new parts of the file.
static UNWRITTEN_CHUNK: [u64; CHUNK] = [UNWRITTEN; CHUNK];

/// The most chunks of threads that have ended that are kept for others.
const REUSABLE: usize = 64;

/// A growing file. [`append`] writes to its chunks. Nothing here allocates once the file is made: the process may end
/// in a signal handler while another thread, which waits for the lock of malloc(3), is in here.
pub struct Chunks {
    /// Its name.
    pub name: NamedFile,
    /// The size of the file in bytes.
    size: u64,
    /// The offset of the next unused chunk in the file.
    next: u64,
    /// Whether the process ends. The last chunk of the file is kept for that, in case it cannot grow any more.
    is_ending: bool,
    /// The end of the mapping of the last piece.
    mapped_to: usize,
    lanes: u32,
    pieces: Pieces,
    /// The positions in the chunks of threads that have ended.
    reusable: [Option<Position>; REUSABLE],
}

/// The next address and the end in a thread's chunk, and the number of the lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    next: usize,
    end: usize,
    lane: u32,
}

/// The position of a thread. Signal handlers use it at any instruction. It has no destructor.
pub(crate) struct Lane {
    next: Cell<usize>,
    end: Cell<usize>,
    number: Cell<u32>,
    epoch: Cell<u32>,
    /// The address of the record that is being written; 0 for none.
    writes: Cell<usize>,
    /// Whether the thread is in [`Chunks::renew`].
    busy: Cell<bool>,
    /// The latest record of a call for the next one, and its end, where the next record may use it. A handler that
    /// interrupts a record does not use them.
    latest: Cell<Before>,
    latest_end: Cell<usize>,
}

/// Changes with the file, in a forked child.
static EPOCH: AtomicU32 = AtomicU32::new(1);

impl Chunks {
    /// Creates a file, which is at its path after [`NamedFile::publish`]. An existing file is not changed (`AlreadyExists`).
    pub fn create(path: &Path) -> io::Result<Self> {
        let (name, file) = NamedFile::create(path)?;
        let (pieces, reusable) = (Pieces::default(), [None; REUSABLE]);
        let mut chunks = Self { name, size: 0, next: 0, is_ending: false, mapped_to: 0, lanes: 0, pieces, reusable };
        if let Err(error) = chunks.grow_with(&file) {
            // It has no records yet, and an empty file is no trace.
            chunks.name.remove();
            return Err(error);
        }
        Ok(chunks)
    }

    /// Gives this thread a chunk with room for a record of any length. `beginning` precedes the head of the chunk.
    /// Fails if the file cannot grow.
    pub fn renew(&mut self, pid: u32, tid: u32, beginning: &[u64]) -> io::Result<()> {
        let lane = Lane::own();
        lane.busy.set(true);
        let renewed = self.renew_lane(lane, pid, tid, beginning);
        lane.busy.set(false);
        renewed
    }

    fn renew_lane(&mut self, lane: &Lane, pid: u32, tid: u32, beginning: &[u64]) -> io::Result<()> {
        let old = lane.take();
        if old.end != 0 {
            self.retire_chunk(lane, old);
        } else if let Some(position) = self.reusable.iter_mut().find_map(Option::take) {
            lane.set(position);
            append(&write::thread(pid, tid));
            return Ok(());
        }
        let start = self.next_chunk()?;
        let number = if old.end == 0 { self.lanes } else { old.lane };
        self.lanes += u32::from(old.end == 0);
        lane.set(Position { next: start, end: start + CHUNK_BYTES as usize, lane: number });
        if !beginning.is_empty() {
            append_all(beginning);
        }
        append(&write::head(number));
        append(&write::thread(pid, tid));
        Ok(())
    }

    /// Returns the chunk of this thread, which ends.
    pub fn leave_chunk(&mut self) {
        let lane = Lane::own();
        let position = lane.take();
        let place = self.reusable.iter_mut().find(|place| place.is_none());
        match place {
            Some(place) if position.end.saturating_sub(position.next) >= WORD * CHUNK / 2 => *place = Some(position),
            _ if position.end != 0 => self.retire_chunk(lane, position),
            _ => {}
        }
    }

    /// Marks a chunk as full: no thread will write to it.
    fn retire_chunk(&mut self, lane: &Lane, position: Position) {
        let start = position.end - CHUNK_BYTES as usize;
        // An interrupted record continues in the chunk, which stays mapped.
        if !(start..position.end).contains(&lane.writes.get()) {
            self.pieces.mark_full(start, unmap);
        }
    }

    /// The address of a new chunk.
    fn next_chunk(&mut self) -> io::Result<usize> {
        let unused = self.size - self.next;
        let mut start = self.mapped_to - unused as usize;
        if unused <= if self.is_ending { 0 } else { CHUNK_BYTES } {
            let file = self.name.reopen()?;
            if (plain_file::status_of(&file)?.st_size as u64) < self.size {
                return Err(plain_file::taken());
            }
            self.grow_with(&file)?;
            if unused == 0 {
                start = self.mapped_to - (self.size - self.next) as usize;
            }
        }
        self.next += CHUNK_BYTES;
        Ok(start)
    }

    /// Allows the use of the last chunk.
    pub fn begin_end(&mut self) {
        self.is_ending = true;
    }

    fn grow_with(&mut self, file: &File) -> io::Result<()> {
        let wanted = match self.size {
            0 => FIRST_PIECE,
            size @ ..SECOND_PIECE => (size + 1).next_multiple_of(SECOND_PIECE),
            size => (size + 1).next_multiple_of(PIECE),
        };
        let limit = super::super::processes::process::file_size_limit();
        let size = wanted.min(limit - limit % CHUNK_BYTES);
        if size < self.size + 2 * CHUNK_BYTES {
            return Err(plain_file::too_large());
        }
        if let Err(error) =
            plain_file::write_copies(file, zerocopy::IntoBytes::as_bytes(&UNWRITTEN_CHUNK), self.size, size)
        {
            // The disk is full: no incomplete chunk may stay.
            let _ = file.set_len(self.size);
            return Err(error);
        }
        let length = (size - self.size) as usize;
        let mapping = plain_file::map(file, self.size, length)?.as_ptr();
        // A child must not write into its parent's file. Populating all pages at once takes half as long as one by one.
        // SAFETY: the new mapping; its contents do not change.
        unsafe {
            libc::madvise(mapping, length, libc::MADV_DONTFORK);
            libc::madvise(mapping, length, libc::MADV_POPULATE_WRITE);
        }
        let start = mapping.expose_provenance();
        self.mapped_to = start + length;
        self.pieces.add(start..self.mapped_to, unmap);
        self.size = size;
        Ok(())
    }

    /// Truncates the file after the last used chunk. It grows again for another chunk.
    pub fn close(&mut self) -> io::Result<()> {
        let file = self.name.reopen()?;
        file.set_len(self.next)?;
        self.size = self.next;
        Ok(())
    }
}

/// Unmaps chunks that are full.
fn unmap(addresses: Range<usize>) {
    // SAFETY: no thread has a position in these chunks or writes there, and none will.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(addresses.start), addresses.len()) };
}

impl Lane {
    /// The lane of this thread.
    #[inline]
    fn own() -> &'static Self {
        &variables::own().lane
    }

    /// Takes the position: nothing can be appended until [`Self::set`].
    fn take(&self) -> Position {
        let current = self.epoch.get() == EPOCH.load(Ordering::Relaxed);
        // One instruction: a handler appends before the position that is taken, or finds no room.
        let next = sync::exchange(&self.next, NO_POSITION);
        let position = Position { next, end: self.end.get(), lane: self.number.get() };
        self.end.set(0);
        compiler_fence(Ordering::SeqCst);
        if current { position } else { Position::default() }
    }

    fn set(&self, position: Position) {
        self.number.set(position.lane);
        self.epoch.set(EPOCH.load(Ordering::Relaxed));
        self.end.set(position.end);
        // In a forked child, the chunk may have the address of one of the parent's.
        self.latest_end.set(0);
        compiler_fence(Ordering::SeqCst);
        // Set last, so that handlers find no room before.
        self.next.set(position.next);
    }

    /// The record before one at `next`.
    #[inline]
    fn before(&self, next: usize) -> Before {
        let is_next = self.writes.get() == 0 && self.latest_end.get() == next;
        if is_next { self.latest.get() } else { Before::default() }
    }

    /// Claims `bytes` at `next`, and stores the address in [`Self::writes`].
    #[inline]
    fn claim(&self, next: usize, bytes: usize) -> Claim {
        if self.epoch.get() != EPOCH.load(Ordering::Relaxed) {
            return Claim::NoRoom;
        }
        let end = self.end.get();
        if next.checked_add(bytes).is_none_or(|latest_end| latest_end > end) {
            return Claim::NoRoom;
        }
        if !sync::advance(&self.next, next, next + bytes) {
            return Claim::Interrupted;
        }
        let outer = self.writes.replace(next);
        compiler_fence(Ordering::SeqCst);
        // A handler in between may have given this thread another chunk. The claimed space is not in it, and may be
        // unmapped.
        if self.end.get() != end {
            self.writes.set(outer);
            return Claim::Interrupted;
        }
        Claim::Room(std::ptr::with_exposed_provenance_mut(next))
    }

    /// Finishes a record; the thread continues the interrupted one, `outer`. `for_next` is set for a record of a call.
    #[inline]
    fn finish_record(&self, for_next: Option<Before>, latest_end: usize, outer: usize) {
        if let (0, Some(for_next)) = (outer, for_next) {
            self.latest.set(for_next);
            self.latest_end.set(latest_end);
        }
        compiler_fence(Ordering::SeqCst);
        self.writes.set(outer);
    }
}

enum Claim {
    Room(*mut u64),
    NoRoom,
    /// A handler has appended a record in between.
    Interrupted,
}

/// Stores the words of a record after the first one.
struct Words(*mut u64);

impl write::Sink for Words {
    #[inline]
    fn word(&mut self, word: u64) {
        // SAFETY: `append_with` has claimed space for the words that the same function passed to `Measure`.
        unsafe {
            sync::store(self.0, word);
            self.0 = self.0.add(1);
        }
    }
}

/// A record that [`append_with`] can store.
pub trait Record {
    /// Whether the record can follow `before`.
    #[inline]
    fn fits(&self, _before: Before) -> bool {
        true
    }

    /// Passes the words after the first one to `to`, and returns the first one, which contains the length; `None` for a
    /// record that cannot be written. `before` comes from the record before. Must do the same each time.
    fn words(&self, before: Before, to: &mut impl write::Sink) -> Option<u64>;

    /// The `before` of the next record, if this is the record of a call.
    #[inline]
    fn for_next(&self, _before: Before) -> Option<Before> {
        None
    }
}

/// The result of appending a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the file.
    Yes,
    /// This thread needs another chunk.
    NoRoom,
    /// It cannot follow the record before ([`Record::fits`]).
    Unfit,
    /// It cannot be written: it is too long, or a signal handler interrupted [`Chunks::renew`].
    Never,
}

/// Appends a record to this thread's chunk.
#[expect(clippy::inline_always, reason = "the row of a function decides which values its records have")]
#[inline(always)]
pub fn append_with(record: &impl Record) -> Appended {
    let lane = Lane::own();
    let outer = lane.writes.get();
    loop {
        let next = lane.next.get();
        let before = lane.before(next);
        if !record.fits(before) {
            return Appended::Unfit;
        }
        let Some(first) = record.words(before, &mut write::Measure) else { return Appended::Never };
        let bytes = write::length(first) * WORD;
        let place = match lane.claim(next, bytes) {
            Claim::Room(place) => place,
            Claim::NoRoom if lane.busy.get() => return Appended::Never,
            Claim::NoRoom => return Appended::NoRoom,
            Claim::Interrupted => continue,
        };
        // SAFETY: `claim` returned space for the record, in a chunk that stays mapped while this thread writes there.
        unsafe {
            sync::store(place, hole(write::length(first)));
            record.words(before, &mut Words(place.add(1)));
            sync::store(place, first);
        }
        sync::prefetch_to_write(next + bytes + PREFETCH_DISTANCE);
        lane.finish_record(record.for_next(before), next + bytes, outer);
        return Appended::Yes;
    }
}

struct Encoded<'a>(&'a [u64]);

impl Record for Encoded<'_> {
    fn words(&self, _: Before, to: &mut impl write::Sink) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        for word in rest {
            to.word(*word);
        }
        Some(*first)
    }
}

/// Appends an encoded record.
pub fn append(words: &[u64]) -> Appended {
    let fits = words.first().is_some_and(|first| write::length(*first) == words.len()) && words.len() <= CHUNK - HEAD;
    if fits { append_with(&Encoded(words)) } else { Appended::Never }
}

/// Appends several encoded records to an unwritten chunk.
fn append_all(words: &[u64]) {
    let lane = Lane::own();
    let (outer, next, bytes) = (lane.writes.get(), lane.next.get(), words.len() * WORD);
    if let Claim::Room(place) = lane.claim(next, bytes) {
        for (at, word) in words.iter().enumerate() {
            // SAFETY: as in `append_with`.
            unsafe { sync::store(place.add(at), *word) };
        }
        lane.finish_record(None, next + bytes, outer);
    }
}

/// Takes the chunks from all threads in a forked child: they belong to the parent's file.
pub fn forget() {
    let lane = Lane::own();
    let position = lane.take();
    if position.end != 0 {
        map_placeholder(position.end - CHUNK_BYTES as usize);
    }
    EPOCH.fetch_add(1, Ordering::Relaxed);
    lane.busy.set(false);
}

/// Maps memory at the address of the parent's chunk: a signal handler that forks may have interrupted a record of
/// this thread, which the child then finishes there.
fn map_placeholder(start: usize) {
    let (place, protection) = (std::ptr::with_exposed_provenance_mut(start), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces none. If there is one, or the kernel refuses, nothing changes.
    unsafe { libc::mmap(place, CHUNK_BYTES as usize, protection, flags, -1, 0) };
}

#[cfg(test)]
mod tests;
