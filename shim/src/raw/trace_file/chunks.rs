//! A file that grows by mapped chunks, to which threads write without a lock.
//!
//! The file consists of chunks of [`CHUNK_BYTES`], each of which belongs to one thread at a time. Unwritten words are
//! [`UNWRITTEN`], so the file can be read at any time ([`append`](mod@append)). As in [`super::pages`], no descriptor
//! stays open.

mod append;
pub mod call_words;
mod lane;
mod pieces;

use std::{fs::File, io, ops::Range, path::Path};

use urscope_schema::trace::fxt::{CHUNK, CHUNK_BYTES, UNWRITTEN, write};

use self::append::append_all;
pub use self::append::{Appendable, Appended, Short, append, append_call, append_with};
pub(crate) use self::lane::Lane;
use self::lane::{EPOCH, Position};
use self::pieces::Pieces;
use super::super::files::{named_file::NamedFile, plain_file};
use super::super::signals::sync::Ordering;
use super::super::threads::variables::Variable as _;

/// The file grows to the next multiple of this by one mapping: the size of a large page, for kernels that have them
/// for files.
const PIECE: u64 = 2 << 20;

/// The first size of the file: enough for a process that shares nothing.
const FIRST_PIECE: u64 = 4 * CHUNK_BYTES;

/// The second size: enough for most processes.
const SECOND_PIECE: u64 = 1 << 20;

const WORD: usize = size_of::<u64>();

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

impl Chunks {
    /// Creates a file, which is at its path after [`NamedFile::publish`]. An existing file is not changed
    /// (`AlreadyExists`).
    pub fn create(path: &Path) -> io::Result<Self> {
        let (name, file) = NamedFile::create(path)?;
        let pieces = Pieces::default();
        let reusable = [None; REUSABLE];
        let mut chunks = Self { name, size: 0, next: 0, is_ending: false, mapped_to: 0, lanes: 0, pieces, reusable };
        if let Err(error) = chunks.grow_with(&file) {
            // It has no records yet, and an empty file is no trace.
            chunks.name.remove();
            return Err(error);
        }
        Ok(chunks)
    }

    /// The size of the chunks that have been given to threads, in bytes.
    pub fn used(&self) -> u64 {
        self.next
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
    let place = std::ptr::with_exposed_provenance_mut(start);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces none. If there is one, or the kernel refuses, nothing changes.
    unsafe { libc::mmap(place, CHUNK_BYTES as usize, protection, flags, -1, 0) };
}

#[cfg(test)]
mod tests;
