//! Boards: shared pages that hold the state of events, one state each.
//!
//! Beside the allocations in the same segments, and shared in the same way: with a slot that lets others in, and counts
//! them. The first state is a header that says what the page is. Those who have a page open keep its pages, also when its
//! owner is gone. Must never hold anything but atomics that any process may write at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::log;
use crate::shared_memory::handle_data::HandleData;
use crate::shared_memory::mapping::Mapping;
use crate::shared_memory::segment::{OpenRecord, Span};
use crate::shared_memory::segment_file::SegmentFile;
use crate::shared_memory::{PAGE, exports};

/// Bytes of a state.
const STATE_SIZE: u64 = size_of::<EventState>() as u64;
/// So many promises of one event can be under way before a later one is taken for an earlier one.
const IN_FLIGHT: usize = 32;

/// What a page is for. The number stands in its handles, where that of other memory is its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Purpose {
    /// One counter-based event.
    Event = 0x100,
    /// The events of a pool.
    Pool = 0x101,
}

/// What the owner says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// How many cells there are.
    pub count: u32,
    /// The flags that event or pool was made with.
    pub flags: u32,
    /// Whether the events count.
    pub counters: bool,
}

/// The state of one event.
#[repr(C, align(64))]
pub(crate) struct EventState {
    /// Changes whenever something is signalled; what waiters sleep on.
    pub sequence: AtomicU32,
    /// The header's header. Only the first state has them.
    header: [AtomicU32; 3],
    /// How many signals were submitted.
    pub submitted: AtomicU64,
    /// When the last work that signalled it began.
    pub start: AtomicU64,
    /// When it ended; 0 before that.
    pub end: AtomicU64,
    /// For each value, in turn, the latest of those that share its place that was completed_value.
    completed: [AtomicU64; IN_FLIGHT],
}

impl EventState {
    /// Where it stands that this value was completed_value: then no less than its number is there.
    pub(crate) fn completed_value(&self, value: u64) -> &AtomicU64 {
        let [first, ..] = &self.completed;
        self.completed.get(value as usize % IN_FLIGHT).unwrap_or(first)
    }
}

/// A page: made here, or opened.
pub(crate) struct EventPage {
    // In this order: the pages must be unmapped before they are given back.
    pages: Mapping,
    owner: Owner,
    purpose: Purpose,
    header: Header,
}

enum Owner {
    Own(Span),
    /// What counts this process in. Held for its drop.
    Opened {
        _record: OpenRecord,
    },
}

impl EventPage {
    /// A page with all cells zero.
    pub(crate) fn new(purpose: Purpose, header: Header) -> Outcome<Arc<Self>> {
        let span = Span::take(length(header.count))?;
        let page = Self { pages: span.map(PAGE)?, owner: Owner::Own(span), purpose, header };
        let header = [header.count, header.flags, u32::from(header.counters)];
        for (word, value) in page.at(0).header.iter().zip(header) {
            word.store(value, Ordering::Release);
        }
        Ok(Arc::new(page))
    }

    /// The page of a handle: `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle of such a page, and if it cannot be
    /// had. Intel's driver does not look at the bytes, and says this when it has failed to import what they say.
    pub(crate) fn open(purpose: Purpose, bytes: &[u8; 64]) -> Outcome<Arc<Self>> {
        let fails = |why: &str| {
            log::note(&format!("cannot open an IPC handle of an {purpose:?}: {why}"));
            ZeResult::OUT_OF_DEVICE_MEMORY
        };
        // Nobody but us looks at these bytes, so the first four are as they were too.
        let data = HandleData::decode(bytes)
            .filter(|data| data.kind == purpose as u16 && data.descriptor == data.exported)
            .ok_or_else(|| fails("the bytes are damaged or not a handle of ours"))?;
        let file = SegmentFile::of(&data).map_err(|why| fails(&why))?;
        if !data.size.is_multiple_of(PAGE as u64) || !file.holds(&data, data.size) {
            return Err(fails("it lies outside of its file"));
        }
        let record = OpenRecord::open(file.as_fd(), u32::from(data.record), data.identity)
            .map_err(|_| fails("its owner has destroyed it"))?;
        let pages = Mapping::shared(file.as_fd(), data.offset, data.size as usize, PAGE)?;
        let header = Header { count: 0, flags: 0, counters: false };
        let mut page = Self { pages, owner: Owner::Opened { _record: record }, purpose, header };
        let [count, flags, counters] = page.at(0).header.each_ref().map(|word| word.load(Ordering::Acquire));
        if length(count) > data.size {
            return Err(fails("its header is damaged"));
        }
        page.header = Header { count, flags, counters: counters != 0 };
        Ok(Arc::new(page))
    }

    /// A handle for another process: `INVALID_ARGUMENT` for what was itself opened from one.
    pub(crate) fn handle(&self) -> Outcome<[u8; 64]> {
        let Owner::Own(span) = &self.owner else { return Err(ZeResult::INVALID_ARGUMENT) };
        exports::get(span);
        Ok(HandleData::of(span, self.purpose as u16, self.pages.length() as u64).encode())
    }

    /// Nobody shall open it any more. Those who have it open keep it.
    pub(crate) fn revoke(&self) {
        if let Owner::Own(span) = &self.owner {
            exports::revoke(span.identity());
        }
    }

    /// Whether it was opened from a handle.
    pub(crate) fn is_opened(&self) -> bool {
        matches!(self.owner, Owner::Opened { .. })
    }

    /// What the owner says of it.
    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// A state by its number. One that does not exist is the header, which no event uses.
    pub(crate) fn state(&self, number: u32) -> &EventState {
        self.at(if number < self.header.count { u64::from(number) + 1 } else { 0 })
    }

    fn at(&self, place: u64) -> &EventState {
        let state = (self.pages.base() + (place * STATE_SIZE) as usize) as *const EventState;
        // SAFETY: the pages hold the header and `header.count` cells, aligned, for as long as the page lives; `place` is at
        // most that count, and cells are atomics throughout.
        unsafe { &*state }
    }
}

/// Whole pages for a header and that many cells.
fn length(count: u32) -> u64 {
    ((u64::from(count) + 1) * STATE_SIZE).next_multiple_of(PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_and_one_event_fit_on_a_page() {
        assert_eq!(length(1), PAGE as u64);
        assert!(STATE_SIZE.is_multiple_of(align_of::<EventState>() as u64));
    }
}
