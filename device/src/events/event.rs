//! Events and their entry points.
//!
//! Their state is in `signal`, pools are in `pool`, and sharing with other processes is in `ipc`. Must never signal an
//! event on behalf of work: the stream that runs the work does that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::discovery::{context::Context, device::Device};
use crate::events::page::{EventPage, Header, Purpose};
use crate::events::pool::{EventPool, PoolSlot};
use crate::events::signal::{Kind, Signal, Words};
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{
    EventCounterBasedDesc, EventDesc, ExternalAggregateStorageDesc, ExternalSyncAllocationDesc, KernelTimestampData,
    KernelTimestampResult, KernelTimestampsResults,
};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown, getters};
use crate::ffi::{In, Out};
use crate::memory::word::Word;

/// `ZE_EVENT_COUNTER_BASED_FLAG_IPC`.
const IPC: u32 = 1 << 3;
/// `ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP` and `ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP`.
const TIMESTAMP_FLAGS: u32 = 0b11 << 4;
/// `ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL`.
const GRAPH_EXTERNAL: u32 = 1 << 6;
/// All flags of a counter-based event: immediate, non-immediate, host visible, IPC, two kinds of timestamp, graphs.
const FLAGS: u32 = 0b111_1111;

/// The object of a `ze_event_handle_t`.
pub struct Event {
    pub(crate) signal: Arc<Signal>,
    pub(crate) origin: Origin,
    scopes: [u32; 2],
    /// The number of the capture that has recorded a signal of it, while that lasts. 0 for none.
    capture: AtomicU64,
}

/// Where an event comes from.
pub(crate) enum Origin {
    /// A slot of a pool.
    Pool(PoolSlot),
    /// Counter-based, created without a pool, with these flags.
    Single { flags: u32 },
    /// Counter-based, shared with other processes or opened from one of them.
    Shared { flags: u32, page: Arc<EventPage> },
}

object!(Event);

/// `zeEventCreate` (ze_api.h). `INVALID_ARGUMENT` for an index that is out of range.
pub extern "C" fn create(pool: Handle<EventPool>, desc: In<EventDesc>, event: Out<Handle<Event>>) -> ZeResult {
    call(|| {
        let pool = pool.get()?;
        let desc = desc.read()?;
        event.check()?;
        let (slot, signal) = PoolSlot::take(pool, desc.index)?;
        let made = Event::new(signal, Origin::Pool(slot), [desc.signal, desc.wait]);
        event.write(Handle::register(Arc::new(made)))
    })
}

/// `zeEventCounterBasedCreate` (ze_api.h), and `zexCounterBasedEventCreate2` of Intel's driver, which
/// has the same arguments. Its state may be in memory of the application. `INVALID_ARGUMENT` for a
/// shared event with timestamps, and for addresses that are not memory of the device;
/// `UNSUPPORTED_FEATURE` for a shared event in memory of the application.
pub extern "C" fn counter_based_create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<EventCounterBasedDesc>,
    event: Out<Handle<Event>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        device.get()?;
        let EventCounterBasedDesc { flags, signal, wait, .. } = desc.read()?;
        event.check()?;
        if flags & !FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let scopes = [signal, wait];
        let words = words(desc)?;
        let made = if flags & IPC == 0 {
            let signal = words.map_or_else(|| Signal::new(Kind::Counter), Signal::external);
            Event::new(signal, Origin::Single { flags }, scopes)
        } else if words.is_some() {
            return Err(ZeResult::UNSUPPORTED_FEATURE);
        } else if flags & TIMESTAMP_FLAGS == 0 {
            Event::on_new_page(flags, scopes)?
        } else {
            return Err(ZeResult::INVALID_ARGUMENT);
        };
        event.write(Handle::register(Arc::new(made)))
    })
}

/// The words in memory of the application that the chain of a descriptor names: `INVALID_ARGUMENT` for
/// two descriptions, and an error of [`Word::at`].
fn words(desc: In<EventCounterBasedDesc>) -> Outcome<Option<Words>> {
    let sync = desc.next_of::<ExternalSyncAllocationDesc>();
    let aggregate = desc.next_of::<ExternalAggregateStorageDesc>();
    Ok(match (sync, aggregate) {
        (None, None) => None,
        (Some(_), Some(_)) => return Err(ZeResult::INVALID_ARGUMENT),
        (Some(sync), None) => {
            let ExternalSyncAllocationDesc { device_address, host_address, completion_value: completion, .. } =
                sync.read()?;
            let host = if host_address.is_null() { None } else { Some(Word::at(host_address.addr())?) };
            Some(Words { device: Word::at(device_address.addr())?, host, completion, increment: None })
        }
        (None, Some(aggregate)) => {
            let ExternalAggregateStorageDesc { device_address, increment_value, completion_value, .. } =
                aggregate.read()?;
            let device = Word::at(device_address.addr())?;
            Some(Words { device, host: None, completion: completion_value, increment: Some(increment_value) })
        }
    })
}

getters! {
    /// `INVALID_ARGUMENT` for an event of a pool.
    zeEventGetCounterBasedFlags: get_counter_based_flags(event: Event) -> u32 {
        match &event.origin {
            Origin::Single { flags } | Origin::Shared { flags, .. } => *flags,
            Origin::Pool(_) => return Err(ZeResult::INVALID_ARGUMENT),
        }
    }
    /// `INVALID_ARGUMENT` for an event without a pool.
    zeEventGetEventPool: get_event_pool(event: Event) -> Handle<EventPool> {
        match &event.origin {
            Origin::Pool(slot) => Handle::from_object(&slot.pool),
            Origin::Single { .. } | Origin::Shared { .. } => return Err(ZeResult::INVALID_ARGUMENT),
        }
    }
    zeEventGetSignalScope: get_signal_scope(event: Event) -> u32 { event.scopes[0] }
    zeEventGetWaitScope: get_wait_scope(event: Event) -> u32 { event.scopes[1] }
}

/// `zeEventCounterBasedGetDeviceAddress` (ze_api.h). The address of the counter of a shared event or in memory of the
/// application, and the value to wait for. `UNSUPPORTED_FEATURE` for other counter-based events, whose counters have no
/// address in device memory.
pub extern "C" fn counter_based_get_device_address(
    event: Handle<Event>,
    value: Out<u64>,
    address: Out<u64>,
) -> ZeResult {
    call(|| {
        let event = event.get()?;
        event.signal.is_counter().then_some(()).ok_or(ZeResult::INVALID_ARGUMENT)?;
        let (submitted, at) = event.signal.counter_address().ok_or(ZeResult::UNSUPPORTED_FEATURE)?;
        value.check()?;
        address.write(at as u64)?;
        value.write(submitted)
    })
}

/// `zeEventDestroy` (ze_api.h). Work that waits for the event proceeds, because nothing can signal it any more.
pub extern "C" fn destroy(event: Handle<Event>) -> ZeResult {
    call_teardown(|| {
        event.retire()?.end();
        Ok(())
    })
}

/// `zeEventHostSignal` (ze_api.h). `INVALID_ARGUMENT` for counter-based events.
pub extern "C" fn host_signal(event: Handle<Event>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        event.expect_flag()?;
        event.signal.signal_now();
        Ok(())
    })
}

/// `zeEventHostReset` (ze_api.h). `INVALID_ARGUMENT` for counter-based events.
pub extern "C" fn host_reset(event: Handle<Event>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        event.expect_flag()?;
        event.signal.reset();
        Ok(())
    })
}

/// `zeEventHostSynchronize` (ze_api.h). `timeout` is in nanoseconds; `NOT_READY` when it expires.
/// `GRAPH_CAPTURE_UNSUPPORTED` while a capture lasts that has recorded a signal of the event.
pub extern "C" fn host_synchronize(event: Handle<Event>, timeout: u64) -> ZeResult {
    call(|| event.get()?.synchronize(timeout))
}

/// `zeEventQueryStatus` (ze_api.h). `NOT_READY` unless the event is signalled.
pub extern "C" fn query_status(event: Handle<Event>) -> ZeResult {
    call(|| if event.get()?.is_signalled() { Ok(()) } else { Err(ZeResult::NOT_READY) })
}

/// `zeEventQueryKernelTimestamp` (ze_api.h). When the work that signalled the event started and ended, in nanoseconds;
/// `NOT_READY` before that.
pub extern "C" fn query_kernel_timestamp(event: Handle<Event>, result: Out<KernelTimestampResult>) -> ZeResult {
    call(|| result.write(kernel_timestamps(&*event.get()?).ok_or(ZeResult::NOT_READY)?))
}

/// `zeEventQueryKernelTimestampsExt` (ze_api.h). There is one packet. Host and device use the same
/// clock, so both kinds of timestamp are equal; `NOT_READY` unless the event is signalled.
pub extern "C" fn query_kernel_timestamps(
    event: Handle<Event>,
    device: Handle<Device>,
    count: Out<u32>,
    results: In<KernelTimestampsResults>,
) -> ZeResult {
    call(|| {
        let event = event.get()?;
        device.get()?;
        if count.read()? > 0 && !results.is_null() {
            let timestamps = kernel_timestamps(&event).ok_or(ZeResult::NOT_READY)?;
            results.out_member(|results| results.kernel)?.write_optional(timestamps);
            results.out_member(|results| results.synchronized)?.write_optional(timestamps);
        }
        count.write(1)
    })
}

/// The timestamps of the last work that signalled the event. `None` unless it is signalled.
pub(crate) fn kernel_timestamps(event: &Event) -> Option<KernelTimestampResult> {
    let timestamps = event.signal.timestamps()?;
    let data = KernelTimestampData { kernel_start: timestamps.start, kernel_end: timestamps.end };
    Some(KernelTimestampResult { global: data, context: data })
}

impl Event {
    fn new(signal: impl Into<Arc<Signal>>, origin: Origin, scopes: [u32; 2]) -> Self {
        Self { signal: signal.into(), origin, scopes, capture: AtomicU64::new(0) }
    }

    /// A counter-based event without a handle, in the state of a new one, with the scopes of this one.
    pub(crate) fn private_copy(&self) -> Self {
        Self::new(Signal::new(Kind::Counter), Origin::Single { flags: 0 }, self.scopes)
    }

    /// A counter-based event of this process, for the device and other interfaces.
    pub fn counter() -> Self {
        Self::new(Signal::new(Kind::Counter), Origin::Single { flags: GRAPH_EXTERNAL }, [0; 2])
    }

    /// One that other processes can open: `OUT_OF_HOST_MEMORY` if the host has no more memory.
    pub fn shared_counter() -> Outcome<Self> {
        Self::on_new_page(IPC, [0; 2])
    }

    /// Whether a wait that begins now would end at once.
    pub fn is_signalled(&self) -> bool {
        // A recorded signal makes a counter wait for a value that nothing completes as long as the capture lasts.
        let recorded = self.signal.is_counter() && self.capture() != 0;
        !recorded && self.signal.is_signalled()
    }

    /// Waits for `timeout` nanoseconds, without an end for `u64::MAX`: `NOT_READY` when they have passed,
    /// `GRAPH_CAPTURE_UNSUPPORTED` while a capture lasts that has recorded a signal of the event.
    pub fn synchronize(&self, timeout: u64) -> Outcome {
        if self.capture() == 0 { self.signal.synchronize(timeout) } else { Err(ZeResult::GRAPH_CAPTURE_UNSUPPORTED) }
    }

    /// When the last work that signalled the event ended, in nanoseconds of the device's clock. `None` unless it is
    /// signalled.
    pub fn completed_at(&self) -> Option<u64> {
        self.signal.timestamps().map(|timestamps| timestamps.end)
    }

    /// Whether signals that a capture records belong to the graph only: the event is counter-based, was not created for
    /// more (`ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL`), and has no state in memory of the application.
    pub(crate) fn is_internal_to_graphs(&self) -> bool {
        let external = match &self.origin {
            Origin::Single { flags } | Origin::Shared { flags, .. } => flags & GRAPH_EXTERNAL != 0,
            Origin::Pool(_) => false,
        };
        self.signal.is_counter() && !external && !self.signal.is_in_memory_of_the_application()
    }

    /// The number of the capture that has recorded a signal of it, while that lasts. 0 for none.
    pub(crate) fn capture(&self) -> u64 {
        self.capture.load(Ordering::Acquire)
    }

    /// Stores the number of a capture that has recorded a signal of it.
    pub(crate) fn begin_capture(&self, number: u64) {
        self.capture.store(number, Ordering::Release);
    }

    /// Removes the number of a capture that has ended, unless another one has recorded a signal since.
    pub(crate) fn end_capture(&self, number: u64) {
        // An error means that another capture has.
        let _ = self.capture.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    fn on_new_page(flags: u32, scopes: [u32; 2]) -> Outcome<Self> {
        Ok(Self::on_page(EventPage::new(Purpose::Event, Header { count: 1, flags, counters: true })?, scopes))
    }

    /// The counter-based event with its state on `page`.
    pub(crate) fn on_page(page: Arc<EventPage>, scopes: [u32; 2]) -> Self {
        let signal = Signal::shared(Kind::Counter, Arc::clone(&page), 0);
        let flags = page.header.flags;
        Self::new(signal, Origin::Shared { flags, page }, scopes)
    }

    /// Releases what the event holds, after its handle was removed.
    pub(crate) fn end(&self) {
        let is_over = match &self.origin {
            Origin::Pool(slot) => slot.release(),
            Origin::Single { .. } => true,
            Origin::Shared { page, .. } => {
                page.revoke();
                true
            }
        };
        if is_over {
            self.signal.abandon();
        }
    }

    /// `INVALID_ARGUMENT` for a counter-based event, which the host and commands must not signal or reset this way.
    pub(crate) fn expect_flag(&self) -> Outcome {
        if self.signal.is_counter() { Err(ZeResult::INVALID_ARGUMENT) } else { Ok(()) }
    }
}
