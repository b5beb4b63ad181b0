//! Shared event pages: pages of shared memory that hold the state of events which several processes use.
//!
//! The pages of single events share one file. The page of a pool has a file of its own if enough descriptors are left,
//! because programs pass on the descriptor of a pool. Other processes open them in the same way as memory. The first
//! state is the header of the page. Processes that have a page open keep it, also when its owner has exited. Must never
//! hold anything but atomics, because any process may write to them at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ffi::result::{Outcome, ZeResult};
use crate::platform::settings;
use crate::shared_memory::import::{Import, ImportError};
use crate::shared_memory::mapping::{Mapping, SharedState};
use crate::shared_memory::own_file::{Description, NO_DEVICE};
use crate::shared_memory::{PAGE, exports, handle_data::HandleData, segment::Span};

/// Bytes of a state.
const STATE_SIZE: u64 = size_of::<EventState>() as u64;
/// Signals of one event that can be in flight before two of them share a word.
const IN_FLIGHT: usize = 32;

/// What a page is for. A handle of the page has this number where a handle of memory has its `ze_memory_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Purpose {
    /// One counter-based event.
    Event = 0x100,
    /// The events of a pool.
    Pool = 0x101,
}

/// The properties that the owner writes into the header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of event states.
    pub count: u32,
    /// The flags that the event or the pool was created with.
    pub flags: u32,
    pub counters: bool,
}

#[repr(C, align(64))]
pub(crate) struct EventState {
    /// Changes with every signal. Waiters sleep on it.
    pub sequence: AtomicU32,
    /// The fields of [`Header`]. Only the first state has them.
    header: [AtomicU32; 3],
    pub submitted: AtomicU64,
    /// When the last work that signalled the event started, in nanoseconds.
    pub start: AtomicU64,
    /// When that work ended, in nanoseconds; 0 before the first signal.
    pub end: AtomicU64,
    /// Whether a wait or a query has found it incomplete since the last signal: 1 or 0.
    pub awaited: AtomicU32,
    /// Word `value % IN_FLIGHT` is the largest value that has completed, of those that share the word.
    completed: [AtomicU64; IN_FLIGHT],
}

// SAFETY: all its fields are atomics, which are valid for every bit pattern, and it is aligned to 64 bytes.
unsafe impl SharedState for EventState {}

impl EventState {
    /// The word that is at least `value` once this value has completed.
    pub(crate) fn completed(&self, value: u64) -> &AtomicU64 {
        let [first, ..] = &self.completed;
        self.completed.get(value as usize % IN_FLIGHT).unwrap_or(first)
    }
}

/// A shared event page of this process, or one that was opened from a handle. It is one page or several.
pub(crate) struct EventPage {
    memory: Memory,
    /// What the owner wrote into its header.
    pub(crate) header: Header,
}

enum Memory {
    // In this order: the pages must be unmapped before they are returned to their segment.
    Own { mapping: Mapping, span: Span, purpose: Purpose },
    Opened(Import),
}

impl EventPage {
    /// A new page with all states zero: `OUT_OF_HOST_MEMORY` if the host has no more memory.
    pub(crate) fn new(purpose: Purpose, header: Header) -> Outcome<Arc<Self>> {
        let length = length(header.count);
        let span = if purpose == Purpose::Pool { Span::take(length)? } else { Span::shared(length)? };
        let page = Self { memory: Memory::Own { mapping: span.map(PAGE)?, span, purpose }, header };
        let words = [header.count, header.flags, u32::from(header.counters)];
        for (word, value) in page.at(0).header.iter().zip(words) {
            word.store(value, Ordering::Release);
        }
        Ok(Arc::new(page))
    }

    /// Opens the page of a handle: `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle of such a page, and for a
    /// page that cannot be opened. Intel's driver does not check the bytes, and returns this code when the import of
    /// what they describe fails.
    pub(crate) fn open(purpose: Purpose, bytes: &[u8; 64]) -> Outcome<Arc<Self>> {
        let refuse = |reason: &str| {
            ZeResult::OUT_OF_DEVICE_MEMORY.because(|| format!("cannot open an IPC handle of an {purpose:?}: {reason}"))
        };
        let data = HandleData::decode(bytes)
            .filter(|data| data.kind == purpose as u16)
            .ok_or_else(|| refuse("the bytes are damaged or not a handle of this device"))?;
        if !data.size.is_multiple_of(PAGE as u64) {
            return Err(refuse("its size is not a multiple of the page size"));
        }
        let import = Import::open(&data, data.size as usize).map_err(|error| match error {
            ImportError::Refused(reason) => refuse(&reason),
            ImportError::Host(code) => code,
        })?;
        let mut page = Self { memory: Memory::Opened(import), header: Header { count: 0, flags: 0, counters: false } };
        let [count, flags, counters] = page.at(0).header.each_ref().map(|word| word.load(Ordering::Acquire));
        if length(count) > data.size {
            return Err(refuse("its header is damaged"));
        }
        page.header = Header { count, flags, counters: counters != 0 };
        Ok(Arc::new(page))
    }

    /// A handle for another process: `INVALID_ARGUMENT` if the page was itself opened from one.
    pub(crate) fn handle(&self) -> Outcome<[u8; 64]> {
        let Memory::Own { mapping, span, purpose } = &self.memory else { return Err(ZeResult::INVALID_ARGUMENT) };
        let description = Description { kind: *purpose as u16, device: NO_DEVICE, size: mapping.length() as u64 };
        // The handle of an event is passed on as it is, so it always names its producer.
        exports::get(span, description, *purpose == Purpose::Event || !settings::get().bare_handles)
    }

    /// Refuses further opens. Processes that have the page open keep it.
    pub(crate) fn revoke(&self) {
        if let Memory::Own { span, .. } = &self.memory {
            exports::revoke(span.identity);
        }
    }

    pub(crate) fn is_opened(&self) -> bool {
        matches!(self.memory, Memory::Opened(_))
    }

    /// The state with this index. An index beyond the count gives the first state, which no event uses.
    pub(crate) fn state(&self, index: u32) -> &EventState {
        self.at(if index < self.header.count { index as usize + 1 } else { 0 })
    }

    fn at(&self, position: usize) -> &EventState {
        static OUTSIDE: EventState = EventState {
            sequence: AtomicU32::new(0),
            header: [const { AtomicU32::new(0) }; 3],
            submitted: AtomicU64::new(0),
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            awaited: AtomicU32::new(0),
            completed: [const { AtomicU64::new(0) }; IN_FLIGHT],
        };
        let mapping = match &self.memory {
            Memory::Own { mapping, .. } => mapping,
            Memory::Opened(import) => &import.mapping,
        };
        // The pages have room for the header and all states, so the fallback is never used.
        mapping.get(position).unwrap_or(&OUTSIDE)
    }
}

/// Bytes of the whole pages that a header and `count` states need.
fn length(count: u32) -> u64 {
    ((u64::from(count) + 1) * STATE_SIZE).next_multiple_of(PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_and_one_event_fit_on_a_page() {
        assert_eq!(length(1), PAGE as u64);
        assert!(STATE_SIZE.is_multiple_of(align_of::<EventState>() as u64));
    }
}
