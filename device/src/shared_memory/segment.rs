//! The shared-memory files (memfd) that all memory lies in.
//!
//! One descriptor for each allocation would use up RLIMIT_NOFILE (1024, as a rule) in a program with a few thousand
//! allocations, and a mapped memfd whose descriptor was closed cannot be exported any more. So allocations share
//! *segments*: sparse files, each with a head of records and then data, of which an allocation takes a range of pages and
//! one record. What is larger than a 64th of all memory gets a segment of its own, which bounds the number of descriptors
//! whatever an application allocates.
//!
//! A record is a word in the file itself, so that all processes see it: the identity of the allocation there, while it has
//! an IPC handle out, and how many mappings are open. A consumer opens by raising the count if the identity is still the
//! one in its handle; so a handle whose memory was freed is refused, and a freed range is not used again while somebody
//! has it open. A consumer that is killed leaves its count behind: its range is then kept until its segment goes, which is when
//! the last allocation in it has been freed.
//!
//! Must never hand out a range that another process still sees.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::mapping::Mapping;
use super::{PAGE, exports};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::settings;

/// Slots in the head of a segment that is shared: 64 KiB of words.
const SHARED_RECORDS: u32 = 8192;
/// Segments are this many times larger than the largest allocation that shares one.
const SHARES: u64 = 4;
/// What a range that lies alone in its file has behind its record: a mark and its length.
const DEDICATED_MAGIC: u64 = u64::from_le_bytes(*b"zsphysm1");
const DEDICATED_MARK: u64 = 8;
/// Where such a range begins.
pub(crate) const DEDICATED_OFFSET: u64 = PAGE as u64;
/// How every file of ours is sealed: nobody who has its descriptor can make it shorter, and so a touch of it a fault.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// The low bits of a record count the open mappings, the occupancy is the identity.
const COUNT_BITS: u32 = 24;

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);
static SHARED: Mutex<Vec<Arc<Segment>>> = Mutex::new(Vec::new());

/// A shared-memory file with a head of records and a data area.
pub(crate) struct Segment {
    file: File,
    inode: u64,
    /// Whether it holds more than one range.
    shared: bool,
    head: Mapping,
    ranges: Mutex<Ranges>,
}

/// What of a segment is taken. Offsets and lengths are bytes, multiples of a page.
struct Ranges {
    free: BTreeMap<u64, u64>,
    free_records: Vec<u32>,
    live: usize,
    /// Freed by us, still open elsewhere.
    lingering: Vec<(u32, u64, u64)>,
}

/// What a segment holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    /// Allocations.
    Live,
    /// Only freed ranges that are open elsewhere.
    Lingering,
    Empty,
}

/// A range of pages in a segment, and its record. Given back on drop.
pub(crate) struct Span {
    segment: Arc<Segment>,
    record: u32,
    identity: u64,
    offset: u64,
    length: u64,
}

impl Span {
    /// Takes `length` bytes, a multiple of the page size, all zero.
    pub(crate) fn take(length: u64) -> Outcome<Self> {
        let largest = largest_share();
        if length > largest {
            let segment = Arc::new(Segment::new(1, length)?);
            return segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY);
        }
        let mut shared = SHARED.lock();
        if let Some(span) = shared.iter().find_map(|segment| segment.take(length)) {
            return Ok(span);
        }
        let segment = Arc::new(Segment::new(SHARED_RECORDS, largest * SHARES)?);
        shared.push(Arc::clone(&segment));
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Takes `length` bytes as `take` does, but in a file of its own that can be told to be one ([`dedicated_size`]).
    pub(crate) fn dedicated(length: u64) -> Outcome<Self> {
        let segment = Arc::new(Segment::new(1, length)?);
        let mark = [DEDICATED_MAGIC.to_le_bytes(), length.to_le_bytes()].concat();
        segment.file.write_all_at(&mark, DEDICATED_MARK).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?;
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Maps the range.
    pub(crate) fn map(&self, alignment: usize) -> Outcome<Mapping> {
        Mapping::shared(self.segment.file.as_fd(), self.offset, self.length as usize, alignment)
    }

    /// The segment's file.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.segment.file.as_fd()
    }

    /// The number of the segment's descriptor in this process.
    pub(crate) fn descriptor(&self) -> i32 {
        self.segment.file.as_raw_fd()
    }

    /// The segment's inode, which names it on this host while it exists.
    pub(crate) fn inode(&self) -> u64 {
        self.segment.inode
    }

    /// Where the range begins in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The record of the range.
    pub(crate) fn record(&self) -> u32 {
        self.record
    }

    /// The word that lets other processes in.
    pub(crate) fn export_record(&self) -> ExportRecord {
        ExportRecord { segment: Arc::clone(&self.segment), record: self.record }
    }

    /// What the record holds while a handle is out: unique in this process, 40 bits.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        exports::revoke(self.identity);
        let mut shared = SHARED.lock();
        let occupancy = self.segment.give_back(self.record, self.offset, self.length);
        // Nothing of ours is in it any more: those who have it open keep the file alive. One that is quite empty is
        // kept, so that a program with one allocation at a time does not make a file for each.
        if occupancy == Occupancy::Lingering || (occupancy == Occupancy::Empty && shared.len() > 1) {
            shared.retain(|segment| !Arc::ptr_eq(segment, &self.segment));
        }
    }
}

/// The record of an allocation, as its producer opens it to others and closes it.
pub(crate) struct ExportRecord {
    segment: Arc<Segment>,
    record: u32,
}

impl ExportRecord {
    /// Lets in whoever has a handle with this identity.
    pub(crate) fn publish(&self, identity: u64) {
        record_at(&self.segment.head, self.record).fetch_or(identity << COUNT_BITS, Ordering::AcqRel);
    }

    /// Lets nobody in any more. Those who are in stay counted.
    pub(crate) fn withdraw(&self) {
        record_at(&self.segment.head, self.record).fetch_and((1 << COUNT_BITS) - 1, Ordering::AcqRel);
    }
}

impl Segment {
    fn new(records: u32, data: u64) -> Outcome<Self> {
        let head = u64::from(records) * 8;
        let head = head.next_multiple_of(PAGE as u64);
        let file = memory_file(head + data)?;
        let inode = file.metadata().map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?.ino();
        let head_mapping = Mapping::shared(file.as_fd(), 0, head as usize, PAGE)?;
        let ranges = Ranges {
            free: BTreeMap::from([(head, data)]),
            free_records: (0..records).rev().collect(),
            live: 0,
            lingering: Vec::new(),
        };
        Ok(Self { file, inode, shared: records > 1, head: head_mapping, ranges: Mutex::new(ranges) })
    }

    fn take(self: &Arc<Self>, length: u64) -> Option<Span> {
        let mut ranges = self.ranges.lock();
        self.reclaim(&mut ranges);
        let (offset, space) =
            ranges.free.iter().find(|(_, space)| **space >= length).map(|(at, space)| (*at, *space))?;
        let record = ranges.free_records.pop()?;
        ranges.free.remove(&offset);
        if space > length {
            ranges.free.insert(offset + length, space - length);
        }
        ranges.live += 1;
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed) & (u64::MAX >> COUNT_BITS);
        Some(Span { segment: Arc::clone(self), record, identity, offset, length })
    }

    /// Takes a range back, and says what is left in the segment.
    fn give_back(&self, record: u32, offset: u64, length: u64) -> Occupancy {
        let mut ranges = self.ranges.lock();
        ranges.lingering.push((record, offset, length));
        ranges.live -= 1;
        self.reclaim(&mut ranges);
        match (ranges.live, ranges.lingering.len()) {
            (0, 0) => Occupancy::Empty,
            (0, _) => Occupancy::Lingering,
            _ => Occupancy::Live,
        }
    }

    /// Makes what nobody has open any more free again, and gives its pages back to the system.
    fn reclaim(&self, ranges: &mut Ranges) {
        let (gone, open) = std::mem::take(&mut ranges.lingering)
            .into_iter()
            .partition(|(record, ..)| record_at(&self.head, *record).load(Ordering::Acquire) == 0);
        ranges.lingering = open;
        let gone: Vec<(u32, u64, u64)> = gone;
        for (record, offset, length) in gone {
            // A file for one range goes with it. Until then, who imported it by its descriptor, and is in no record, may use it.
            if self.shared {
                punch_hole(self.file.as_fd(), offset, length);
            }
            ranges.free_records.push(record);
            ranges.release(offset, length);
        }
    }
}

impl Ranges {
    /// Adds a range to the free ones, merged with its neighbours.
    fn release(&mut self, mut offset: u64, mut length: u64) {
        if let Some((&before, &space)) = self.free.range(..offset).next_back()
            && before + space == offset
        {
            self.free.remove(&before);
            (offset, length) = (before, space + length);
        }
        if let Some(space) = self.free.remove(&(offset + length)) {
            length += space;
        }
        self.free.insert(offset, length);
    }
}

/// A record of another process's segment, counted as open until drop.
pub(crate) struct OpenRecord {
    page: Mapping,
    index: u32,
}

impl OpenRecord {
    /// Counts this process in, if `identity` is still what lives in record `record` of `file`.
    pub(crate) fn open(file: BorrowedFd<'_>, record: u32, identity: u64) -> Outcome<Self> {
        let per_page = (PAGE / 8) as u32;
        let page = Mapping::shared(file, u64::from(record / per_page) * PAGE as u64, PAGE, PAGE)?;
        let index = record % per_page;
        let raise = |word: u64| (word >> COUNT_BITS == identity).then(|| word + 1);
        record_at(&page, index)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raise)
            .map_err(|_| ZeResult::INVALID_ARGUMENT)?;
        Ok(Self { page, index })
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        record_at(&self.page, self.index).fetch_sub(1, Ordering::AcqRel);
    }
}

/// The word of a record in a mapped head.
fn record_at(head: &Mapping, record: u32) -> &AtomicU64 {
    let place = (head.base() + record as usize * 8) as *const AtomicU64;
    // SAFETY: heads are page-aligned and hold as many words as there are records; the mapping lives as long as the borrow,
    // and every process goes through atomics only.
    unsafe { &*place }
}

/// The largest allocation that shares a segment: a 64th of the memory of all devices, rounded up to whole pages.
fn largest_share() -> u64 {
    let settings = settings::get();
    (settings.memory * u64::from(settings.devices) / 64).next_multiple_of(PAGE as u64)
}

/// A new sparse shared-memory file of `size` bytes.
fn memory_file(size: u64) -> Outcome<File> {
    // SAFETY: the name is a C string literal; memfd_create(2) touches nothing else.
    let descriptor = unsafe { libc::memfd_create(c"ze_soft".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if descriptor < 0 {
        return Err(ZeResult::OUT_OF_HOST_MEMORY);
    }
    // SAFETY: memfd_create has just made the descriptor for us, and nobody else knows it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    file.set_len(size).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?;
    // SAFETY: F_ADD_SEALS takes plain numbers and acts on our file only.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) };
    if sealed == 0 { Ok(file) } else { Err(ZeResult::OUT_OF_HOST_MEMORY) }
}

/// Whether a file is shared memory that was made and sealed as ours is. Only such files can be asked for their seals,
/// so an ordinary file is told apart without being touched.
pub(crate) fn is_ours(file: &File) -> bool {
    // SAFETY: F_GET_SEALS only asks.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) == SEALS }
}

/// The length of the range that lies alone in this file ([`Span::dedicated`]), `None` if it is another file.
pub(crate) fn dedicated_size(file: &File) -> Option<u64> {
    let mut mark = [[0; 8]; 2];
    if !is_ours(file) {
        return None;
    }
    file.read_exact_at(mark.as_flattened_mut(), DEDICATED_MARK).ok()?;
    let [magic, length] = mark.map(u64::from_le_bytes);
    let fits = file.metadata().is_ok_and(|data| Some(data.len()) == length.checked_add(DEDICATED_OFFSET));
    (magic == DEDICATED_MAGIC && fits).then_some(length)
}

/// Frees the pages of a range; it reads as zero afterwards.
fn punch_hole(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate(2) acts on the file only; the range is in it and is nobody's.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, length as libc::off_t) };
}
