//! Segments: the shared-memory files that hold all memory, and the ranges in them.
//!
//! One descriptor for each allocation would exhaust RLIMIT_NOFILE (usually 1024) in a program with a few thousand
//! allocations, and a mapped memfd whose descriptor was closed can no longer be exported. So allocations share
//! *segments*: sparse files, each with a header of records and then data. An allocation takes a range of pages and one
//! record. An allocation that is larger than a 64th of all memory gets a segment of its own, which bounds the number of
//! descriptors for any sequence of allocations.
//!
//! Must never hand out a range that another process still has open.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::mapping::Mapping;
use super::memory_file::{self, is_memory_file, punch_hole};
use super::record::{self, ExportRecord, IDENTITY_MASK, RECORD_SIZE, Records};
use super::{PAGE, exports};
use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::settings;

/// Records in the header of a segment that allocations share: 64 KiB.
const SHARED_RECORDS: u32 = 8192;
/// A shared segment is this many times as large as the largest allocation in it.
const SHARES: u64 = 4;
/// Marks a file that holds one dedicated range. The mark and the length of the range follow its record.
const DEDICATED_MAGIC: u64 = u64::from_le_bytes(*b"zsphysm1");
const DEDICATED_MARK: u64 = RECORD_SIZE as u64;
/// Where a dedicated range begins in its file, in bytes.
pub(crate) const DEDICATED_OFFSET: u64 = PAGE as u64;

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);
static SHARED: Mutex<Vec<Arc<Segment>>> = Mutex::new(Vec::new());

/// A shared-memory file with a header of records and a data area.
struct Segment {
    file: File,
    inode: u64,
    /// Whether it may hold several ranges.
    shared: bool,
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

/// What a segment still holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    /// Allocations.
    Live,
    /// Only freed ranges that are open in another process.
    Lingering,
    Empty,
}

/// A range of pages in a segment, and its record. Returned to the segment on drop.
pub(crate) struct Span {
    segment: Arc<Segment>,
    record: u32,
    identity: u64,
    offset: u64,
    length: u64,
}

impl Span {
    /// Takes `length` bytes, a multiple of the page size, all zero: `OUT_OF_HOST_MEMORY` if the host has no more.
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

    /// Like [`take`](Self::take), in a file that holds nothing else and that [`dedicated_size`] recognises.
    pub(crate) fn dedicated(length: u64) -> Outcome<Self> {
        let segment = Arc::new(Segment::new(1, length)?);
        let mark = [DEDICATED_MAGIC.to_le_bytes(), length.to_le_bytes()].concat();
        segment.file.write_all_at(&mark, DEDICATED_MARK).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?;
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Maps the range at a multiple of `alignment`, a power of 2 or 0.
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

    /// The segment's inode, which identifies it on this host while it exists.
    pub(crate) fn inode(&self) -> u64 {
        self.segment.inode
    }

    /// Where the range begins in the file, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The index of its record.
    pub(crate) fn record(&self) -> u32 {
        self.record
    }

    /// The record that lets other processes open the range.
    pub(crate) fn export_record(&self) -> ExportRecord {
        ExportRecord::new(&self.segment.records, self.record)
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
        // A segment without allocations is released; other processes that have ranges open keep the file itself. The
        // last empty segment stays, so that a program with one allocation at a time does not create a file for each.
        if occupancy == Occupancy::Lingering || (occupancy == Occupancy::Empty && shared.len() > 1) {
            shared.retain(|segment| !Arc::ptr_eq(segment, &self.segment));
        }
    }
}

impl Segment {
    fn new(records: u32, data: u64) -> Outcome<Self> {
        let header = (u64::from(records) * RECORD_SIZE as u64).next_multiple_of(PAGE as u64);
        let file = memory_file::create(header + data)?;
        let inode = file.metadata().map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?.ino();
        let mapping = Mapping::shared(file.as_fd(), 0, header as usize, PAGE)?;
        let ranges = Ranges {
            free: BTreeMap::from([(header, data)]),
            free_records: (0..records).rev().collect(),
            live: 0,
            lingering: Vec::new(),
        };
        Ok(Self { file, inode, shared: records > 1, records: Arc::new(mapping), ranges: Mutex::new(ranges) })
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
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed) & IDENTITY_MASK;
        Some(Span { segment: Arc::clone(self), record, identity, offset, length })
    }

    /// Takes a range back, and returns what the segment still holds.
    fn give_back(&self, record: u32, offset: u64, length: u64) -> Occupancy {
        let mut ranges = self.ranges.lock();
        ranges.lingering.push(Lingering { record, offset, length });
        ranges.live -= 1;
        self.reclaim(&mut ranges);
        match (ranges.live, ranges.lingering.len()) {
            (0, 0) => Occupancy::Empty,
            (0, _) => Occupancy::Lingering,
            _ => Occupancy::Live,
        }
    }

    /// Frees the lingering ranges that no other process has open any more.
    fn reclaim(&self, ranges: &mut Ranges) {
        let (closed, open): (Vec<_>, Vec<_>) = std::mem::take(&mut ranges.lingering)
            .into_iter()
            .partition(|range| record::is_unused(&self.records, range.record));
        ranges.lingering = open;
        for Lingering { record, offset, length } in closed {
            // The pages of a segment of its own are freed with its file. Until then a process that imported the file by
            // its descriptor, which no record counts, may use them.
            if self.shared {
                punch_hole(self.file.as_fd(), offset, length);
            }
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

/// The largest allocation that shares a segment: a 64th of the memory of all devices, rounded up to whole pages.
fn largest_share() -> u64 {
    let settings = settings::get();
    (settings.memory * u64::from(settings.devices) / 64).next_multiple_of(PAGE as u64)
}

/// The length of the dedicated range in this file ([`Span::dedicated`]), in bytes. `None` for any other file.
pub(crate) fn dedicated_size(file: &File) -> Option<u64> {
    let mut mark = [[0; 8]; 2];
    if !is_memory_file(file) {
        return None;
    }
    file.read_exact_at(mark.as_flattened_mut(), DEDICATED_MARK).ok()?;
    let [magic, length] = mark.map(u64::from_le_bytes);
    let fits = file.metadata().is_ok_and(|data| Some(data.len()) == length.checked_add(DEDICATED_OFFSET));
    (magic == DEDICATED_MAGIC && fits).then_some(length)
}
