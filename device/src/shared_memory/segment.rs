//! The shared-memory files (memfd) that all memory lies in.
//!
//! One descriptor for each allocation would use up RLIMIT_NOFILE (1024, as a rule) in a program with a few thousand
//! allocations, and a mapped memfd whose descriptor was closed cannot be exported any more. So allocations share
//! *segments*: sparse files, each with a head of slots and then data, of which an allocation takes a range of pages and
//! one slot. What is larger than a 64th of all memory gets a segment of its own, which bounds the number of descriptors
//! whatever an application allocates.
//!
//! A slot is a word in the file itself, so that all processes see it: the identity of the allocation there, while it has
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
use crate::ffi::result::{Answer, ZeResult};
use crate::platform::settings;

/// Slots in the head of a segment that is shared: 64 KiB of words.
const SHARED_SLOTS: u32 = 8192;
/// Segments are this many times larger than the largest allocation that shares one.
const SHARES: u64 = 4;
/// What a range that lies alone in its file has behind its slot: a mark and its length.
const ALONE_MAGIC: u64 = u64::from_le_bytes(*b"zsphysm1");
const ALONE_MARK: u64 = 8;
/// Where such a range begins.
pub(crate) const ALONE_OFFSET: u64 = PAGE as u64;
/// How every file of ours is sealed: nobody who has its descriptor can make it shorter, and so a touch of it a fault.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// The low bits of a slot count the open mappings, the rest is the identity.
const COUNT_BITS: u32 = 24;

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);
static SHARED: Mutex<Vec<Arc<Segment>>> = Mutex::new(Vec::new());

/// A shared-memory file with a head of slots and a data area.
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
    free_slots: Vec<u32>,
    live: usize,
    /// Freed by us, still open elsewhere.
    lingering: Vec<(u32, u64, u64)>,
}

/// What a segment holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Allocations.
    Live,
    /// Only freed ranges that are open elsewhere.
    Lingering,
    Nothing,
}

/// A range of pages in a segment, and its slot. Given back on drop.
pub(crate) struct Span {
    segment: Arc<Segment>,
    slot: u32,
    identity: u64,
    offset: u64,
    length: u64,
}

impl Span {
    /// Takes `length` bytes, a multiple of the page size, all zero.
    pub(crate) fn take(length: u64) -> Answer<Self> {
        let largest = largest_share();
        if length > largest {
            let segment = Arc::new(Segment::new(1, length)?);
            return segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY);
        }
        let mut shared = SHARED.lock();
        if let Some(span) = shared.iter().find_map(|segment| segment.take(length)) {
            return Ok(span);
        }
        let segment = Arc::new(Segment::new(SHARED_SLOTS, largest * SHARES)?);
        shared.push(Arc::clone(&segment));
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Takes `length` bytes as `take` does, but in a file of its own that can be told to be one ([`size_alone`]).
    pub(crate) fn alone(length: u64) -> Answer<Self> {
        let segment = Arc::new(Segment::new(1, length)?);
        let mark = [ALONE_MAGIC.to_le_bytes(), length.to_le_bytes()].concat();
        segment.file.write_all_at(&mark, ALONE_MARK).map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?;
        segment.take(length).ok_or(ZeResult::OUT_OF_HOST_MEMORY)
    }

    /// Maps the range.
    pub(crate) fn map(&self, alignment: usize) -> Answer<Mapping> {
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

    /// The slot of the range.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// The word that lets other processes in.
    pub(crate) fn door(&self) -> Door {
        Door { segment: Arc::clone(&self.segment), slot: self.slot }
    }

    /// What the slot holds while a handle is out: unique in this process, 40 bits.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        exports::end(self.identity);
        let mut shared = SHARED.lock();
        let rest = self.segment.give_back(self.slot, self.offset, self.length);
        // Nothing of ours is in it any more: those who have it open keep the file alive. One that is quite empty is
        // kept, so that a program with one allocation at a time does not make a file for each.
        if rest == Rest::Lingering || (rest == Rest::Nothing && shared.len() > 1) {
            shared.retain(|segment| !Arc::ptr_eq(segment, &self.segment));
        }
    }
}

/// The slot of an allocation, as its producer opens it to others and closes it.
pub(crate) struct Door {
    segment: Arc<Segment>,
    slot: u32,
}

impl Door {
    /// Lets in whoever has a handle with this identity.
    pub(crate) fn open(&self, identity: u64) {
        slot_at(&self.segment.head, self.slot).fetch_or(identity << COUNT_BITS, Ordering::AcqRel);
    }

    /// Lets nobody in any more. Those who are in stay counted.
    pub(crate) fn close(&self) {
        slot_at(&self.segment.head, self.slot).fetch_and((1 << COUNT_BITS) - 1, Ordering::AcqRel);
    }
}

impl Segment {
    fn new(slots: u32, data: u64) -> Answer<Self> {
        let head = u64::from(slots) * 8;
        let head = head.next_multiple_of(PAGE as u64);
        let file = memory_file(head + data)?;
        let inode = file.metadata().map_err(|_| ZeResult::OUT_OF_HOST_MEMORY)?.ino();
        let head_mapping = Mapping::shared(file.as_fd(), 0, head as usize, PAGE)?;
        let ranges = Ranges {
            free: BTreeMap::from([(head, data)]),
            free_slots: (0..slots).rev().collect(),
            live: 0,
            lingering: Vec::new(),
        };
        Ok(Self { file, inode, shared: slots > 1, head: head_mapping, ranges: Mutex::new(ranges) })
    }

    fn take(self: &Arc<Self>, length: u64) -> Option<Span> {
        let mut ranges = self.ranges.lock();
        self.reclaim(&mut ranges);
        let (offset, room) = ranges.free.iter().find(|(_, room)| **room >= length).map(|(at, room)| (*at, *room))?;
        let slot = ranges.free_slots.pop()?;
        ranges.free.remove(&offset);
        if room > length {
            ranges.free.insert(offset + length, room - length);
        }
        ranges.live += 1;
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed) & (u64::MAX >> COUNT_BITS);
        Some(Span { segment: Arc::clone(self), slot, identity, offset, length })
    }

    /// Takes a range back, and says what is left in the segment.
    fn give_back(&self, slot: u32, offset: u64, length: u64) -> Rest {
        let mut ranges = self.ranges.lock();
        ranges.lingering.push((slot, offset, length));
        ranges.live -= 1;
        self.reclaim(&mut ranges);
        match (ranges.live, ranges.lingering.len()) {
            (0, 0) => Rest::Nothing,
            (0, _) => Rest::Lingering,
            _ => Rest::Live,
        }
    }

    /// Makes what nobody has open any more free again, and gives its pages back to the system.
    fn reclaim(&self, ranges: &mut Ranges) {
        let (gone, open) = std::mem::take(&mut ranges.lingering)
            .into_iter()
            .partition(|(slot, ..)| slot_at(&self.head, *slot).load(Ordering::Acquire) == 0);
        ranges.lingering = open;
        let gone: Vec<(u32, u64, u64)> = gone;
        for (slot, offset, length) in gone {
            // A file for one range goes with it. Until then, who imported it by its descriptor, and is in no slot, may use it.
            if self.shared {
                punch_hole(self.file.as_fd(), offset, length);
            }
            ranges.free_slots.push(slot);
            ranges.release(offset, length);
        }
    }
}

impl Ranges {
    /// Adds a range to the free ones, merged with its neighbours.
    fn release(&mut self, mut offset: u64, mut length: u64) {
        if let Some((&before, &room)) = self.free.range(..offset).next_back()
            && before + room == offset
        {
            self.free.remove(&before);
            (offset, length) = (before, room + length);
        }
        if let Some(room) = self.free.remove(&(offset + length)) {
            length += room;
        }
        self.free.insert(offset, length);
    }
}

/// A slot of another process's segment, counted as open until drop.
pub(crate) struct OpenSlot {
    page: Mapping,
    index: u32,
}

impl OpenSlot {
    /// Counts this process in, if `identity` is still what lives in slot `slot` of `file`.
    pub(crate) fn open(file: BorrowedFd<'_>, slot: u32, identity: u64) -> Answer<Self> {
        let per_page = (PAGE / 8) as u32;
        let page = Mapping::shared(file, u64::from(slot / per_page) * PAGE as u64, PAGE, PAGE)?;
        let index = slot % per_page;
        let raise = |word: u64| (word >> COUNT_BITS == identity).then(|| word + 1);
        slot_at(&page, index)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, raise)
            .map_err(|_| ZeResult::INVALID_ARGUMENT)?;
        Ok(Self { page, index })
    }
}

impl Drop for OpenSlot {
    fn drop(&mut self) {
        slot_at(&self.page, self.index).fetch_sub(1, Ordering::AcqRel);
    }
}

/// The word of a slot in a mapped head.
fn slot_at(head: &Mapping, slot: u32) -> &AtomicU64 {
    let place = (head.base() + slot as usize * 8) as *const AtomicU64;
    // SAFETY: heads are page-aligned and hold as many words as there are slots; the mapping lives as long as the borrow,
    // and every process goes through atomics only.
    unsafe { &*place }
}

/// The largest allocation that shares a segment: a 64th of the memory of all devices, rounded up to whole pages.
fn largest_share() -> u64 {
    let settings = settings::get();
    (settings.memory * u64::from(settings.devices) / 64).next_multiple_of(PAGE as u64)
}

/// A new sparse shared-memory file of `size` bytes.
fn memory_file(size: u64) -> Answer<File> {
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

/// The length of the range that lies alone in this file ([`Span::alone`]), `None` if it is another file.
pub(crate) fn size_alone(file: &File) -> Option<u64> {
    let mut mark = [[0; 8]; 2];
    if !is_ours(file) {
        return None;
    }
    file.read_exact_at(mark.as_flattened_mut(), ALONE_MARK).ok()?;
    let [magic, length] = mark.map(u64::from_le_bytes);
    let fits = file.metadata().is_ok_and(|data| Some(data.len()) == length.checked_add(ALONE_OFFSET));
    (magic == ALONE_MAGIC && fits).then_some(length)
}

/// Frees the pages of a range; it reads as zero afterwards.
fn punch_hole(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate(2) acts on the file only; the range is in it and is nobody's.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, length as libc::off_t) };
}
