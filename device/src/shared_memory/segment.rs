//! Ranges of shared memory: each in a file of its own, or many in one file.
//!
//! A range in a file of its own is what other software expects of the descriptor in an IPC handle (`own_file`). But it
//! costs a descriptor, and a program with a few thousand allocations would exhaust RLIMIT_NOFILE (usually 1024); the
//! descriptor cannot be had later either, because a memfd whose descriptor was closed cannot be exported any more. So a
//! process has files of their own for its ranges until these take half of its descriptors. From then on ranges share
//! *segments*: sparse files with many ranges, and a record for each. Ranges larger than a 64th of all memory still get
//! files of their own, of which there can be only few.
//!
//! Must never hand out a range that another process still has open.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{collections::BTreeMap, fs::File, os::unix::fs::MetadataExt, sync::Arc};

use parking_lot::Mutex;

use super::memory_file::{self, punch_hole};
use super::own_file::{Description, OwnFile};
use super::record::{self, ExportRecord, IDENTITY_MASK, RECORD_SIZE, Records};
use super::{PAGE, exports, mapping::Mapping};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::settings;

/// Records of a segment: 64 KiB.
const RECORDS: u32 = 8192;
/// A segment is this many times as large as the largest range in it.
const SHARES: u64 = 4;

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);
static SEGMENTS: Mutex<Vec<Arc<Segment>>> = Mutex::new(Vec::new());

/// A shared-memory file with many ranges, and their records after them.
struct Segment {
    file: File,
    inode: u64,
    records: Records,
    ranges: Mutex<Ranges>,
}

/// The ranges of a segment. Offsets and lengths are bytes, multiples of a page.
struct Ranges {
    free: BTreeMap<u64, u64>,
    free_records: Vec<u32>,
    live: usize,
    /// Freed here, and still open in another process.
    lingering: Vec<Lingering>,
}

struct Lingering {
    record: u32,
    offset: u64,
    length: u64,
}

/// A range of pages, and the record that other processes open it by. Returned to its file on drop.
pub(crate) struct Span {
    file: SpanFile,
    /// The inode of its file, which identifies it on this host while it exists.
    pub(crate) inode: u64,
    /// The identity in the record while the range has a handle: unique in this process, 40 bits.
    pub(crate) identity: u64,
    /// Where the range begins in the file, in bytes.
    pub(crate) offset: u64,
    length: u64,
    /// The index of its record.
    pub(crate) record: u32,
    /// Whether another process may have opened it.
    is_shared: AtomicBool,
}

enum SpanFile {
    Own(OwnFile),
    Shared(Arc<Segment>),
}

impl Span {
    /// Takes `length` bytes, a multiple of the page size, all zero, in a file of their own if that can be afforded:
    /// `OUT_OF_HOST_MEMORY` if the host has no more.
    pub(crate) fn take(length: u64) -> Outcome<Self> {
        if length > largest_share() {
            return Self::own(length);
        }
        // An application may have used up its descriptors by itself.
        let own = if OwnFile::is_affordable() { Self::own(length).ok() } else { None };
        own.map_or_else(|| Self::shared(length), Ok)
    }

    /// Like [`take`](Self::take), always in a file that holds nothing else.
    pub(crate) fn own(length: u64) -> Outcome<Self> {
        let (file, inode) = OwnFile::new(length)?;
        Ok(Self {
            file: SpanFile::Own(file),
            inode,
            identity: next_identity(),
            offset: 0,
            length,
            record: 0,
            is_shared: AtomicBool::new(false),
        })
    }

    /// Like [`take`](Self::take), in a file with other ranges unless it is too large for that.
    pub(crate) fn shared(length: u64) -> Outcome<Self> {
        let largest = largest_share();
        if length > largest {
            return Self::own(length);
        }
        let mut segments = SEGMENTS.lock();
        if let Some(span) = segments.iter().find_map(|segment| segment.take(length)) {
            return Ok(span);
        }
        let segment = Arc::new(Segment::new(largest * SHARES)?);
        segments.push(Arc::clone(&segment));
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Maps the range at a multiple of `alignment`, unless that is 0, with inaccessible address space after
    /// it: an error of [`Mapping::shared`].
    pub(crate) fn map(&self, alignment: usize) -> Outcome<Mapping> {
        Mapping::guarded(self.file(), self.offset, self.length as usize, alignment)
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        match &self.file {
            SpanFile::Own(own) => own.file.as_fd(),
            SpanFile::Shared(segment) => segment.file.as_fd(),
        }
    }

    /// The number of the descriptor of its file in this process.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file().as_raw_fd()
    }

    /// The inode of its file and where it begins there, if another process may have opened it.
    pub(crate) fn shared_range(&self) -> Option<(u64, u64)> {
        self.is_shared.load(Ordering::Relaxed).then_some((self.inode, self.offset))
    }

    /// Whether its file holds nothing else.
    pub(crate) fn has_own_file(&self) -> bool {
        matches!(self.file, SpanFile::Own(_))
    }

    /// Lets the descriptor of its file alone be enough to open the range: `UNSUPPORTED_FEATURE` if the file holds other
    /// memory, too.
    pub(crate) fn describe(&self, description: Description) -> Outcome {
        self.is_shared.store(true, Ordering::Relaxed);
        match &self.file {
            SpanFile::Own(own) => own.describe(description),
            SpanFile::Shared(_) => Err(ZeResult::UNSUPPORTED_FEATURE),
        }
    }

    /// The record that lets other processes open the range.
    pub(crate) fn export_record(&self) -> Outcome<ExportRecord> {
        self.is_shared.store(true, Ordering::Relaxed);
        match &self.file {
            SpanFile::Own(own) => Ok(ExportRecord::new(own.records()?, self.record)),
            SpanFile::Shared(segment) => Ok(ExportRecord::new(&segment.records, self.record)),
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        exports::revoke(self.identity);
        // The pages of a file with one range are freed with the file. Until then a process that has its descriptor may
        // use them.
        let SpanFile::Shared(segment) = &self.file else { return };
        let mut segments = SEGMENTS.lock();
        let (live, lingering) =
            segment.give_back(Lingering { record: self.record, offset: self.offset, length: self.length });
        // A segment without allocations is released; other processes that have ranges open keep the file itself. The
        // last empty segment stays, so that a program with one allocation at a time does not create a file for each.
        if live == 0 && (lingering > 0 || segments.len() > 1) {
            segments.retain(|other| !Arc::ptr_eq(other, segment));
        }
    }
}

impl Segment {
    /// A segment with `data` bytes for ranges, whole pages.
    fn new(data: u64) -> Outcome<Self> {
        let records = u64::from(RECORDS) * RECORD_SIZE as u64;
        let file = memory_file::create(data + records)?;
        let inode = file.metadata().map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?.ino();
        let mapping = Mapping::shared(file.as_fd(), data, records as usize, PAGE)?;
        let ranges = Ranges {
            free: BTreeMap::from([(0, data)]),
            free_records: (0..RECORDS).rev().collect(),
            live: 0,
            lingering: Vec::new(),
        };
        Ok(Self { file, inode, records: Arc::new(mapping), ranges: Mutex::new(ranges) })
    }

    fn take(self: &Arc<Self>, length: u64) -> Option<Span> {
        let mut ranges = self.ranges.lock();
        self.reclaim(&mut ranges);
        let (offset, available) =
            ranges.free.iter().find(|(_, available)| **available >= length).map(|(at, available)| (*at, *available))?;
        let record = ranges.free_records.pop()?;
        ranges.free.remove(&offset);
        if available > length {
            ranges.free.insert(offset + length, available - length);
        }
        ranges.live += 1;
        let file = SpanFile::Shared(Arc::clone(self));
        Some(Span {
            file,
            inode: self.inode,
            identity: next_identity(),
            offset,
            length,
            record,
            is_shared: AtomicBool::new(false),
        })
    }

    /// Takes a range back, and returns how many allocations and freed ranges the segment still holds.
    fn give_back(&self, range: Lingering) -> (usize, usize) {
        let mut ranges = self.ranges.lock();
        ranges.lingering.push(range);
        ranges.live -= 1;
        self.reclaim(&mut ranges);
        (ranges.live, ranges.lingering.len())
    }

    /// Frees the lingering ranges that no other process has open any more.
    fn reclaim(&self, ranges: &mut Ranges) {
        let is_closed = |range: &mut Lingering| record::is_unused(&self.records, range.record);
        let closed: Vec<_> = ranges.lingering.extract_if(.., is_closed).collect();
        for Lingering { record, offset, length } in closed {
            punch_hole(self.file.as_fd(), offset, length);
            ranges.free_records.push(record);
            ranges.release(offset, length);
        }
    }
}

impl Ranges {
    /// Adds a range to the free ones, and merges it with its neighbours.
    fn release(&mut self, mut offset: u64, mut length: u64) {
        if let Some((&before, &available)) = self.free.range(..offset).next_back()
            && before + available == offset
        {
            self.free.remove(&before);
            (offset, length) = (before, available + length);
        }
        if let Some(available) = self.free.remove(&(offset + length)) {
            length += available;
        }
        self.free.insert(offset, length);
    }
}

fn next_identity() -> u64 {
    NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed) & IDENTITY_MASK
}

/// The largest range that shares a segment: a 64th of the memory of all devices, rounded up to whole pages.
fn largest_share() -> u64 {
    let settings = settings::get();
    (settings.memory * u64::from(settings.devices) / 64).next_multiple_of(PAGE as u64)
}
