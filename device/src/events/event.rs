//! Entry points of events.
//!
//! What an event *is* stands in `signal`, where most of them come from in `pool`, how they are shared with other
//! processes in `event_ipc`. Must never signal an event on behalf of work: that is the stream's business.

use std::sync::Arc;

use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::events::page::{EventPage, Header, Purpose};
use crate::events::pool::{EventPool, PoolSlot};
use crate::events::signal::{Kind, Signal, Timestamps, WaitResult};
use crate::ffi::handles::{Handle, Object, Registry};
use crate::ffi::layout::event::{EventCounterBasedDesc, EventDesc, KernelTimestampData, KernelTimestampResult};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{In, Out};
use crate::platform::clock;

/// `ZE_EVENT_COUNTER_BASED_FLAG_IPC`.
const IPC: u32 = 1 << 3;
/// `ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP` and `_HOST_TIMESTAMP`.
const TIMESTAMP_FLAGS: u32 = 0b11 << 4;
/// All flags of a counter-based event: immediate, non-immediate, host visible, IPC, two kinds of timestamp, graphs.
const FLAGS: u32 = 0b111_1111;

/// An event.
pub struct Event {
    /// What is waited for.
    pub(crate) signal: Signal,
    /// Where it comes from.
    pub(crate) origin: Origin,
    scopes: [u32; 2],
}

/// Where an event comes from.
pub(crate) enum Origin {
    /// A place in a pool.
    Pool(PoolSlot),
    /// Made by itself: counter-based, with these flags.
    Single { flags: u32 },
    /// The same, shared with other processes or opened from one.
    EventPage { flags: u32, page: Arc<EventPage> },
}

impl Object for Event {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<Event> = Registry::new();
        &LIVE
    }
}

/// `zeEventCreate` (ze_api.h): `INVALID_ARGUMENT` for an index that is out of range or taken.
pub extern "C" fn create(pool: Handle<EventPool>, desc: In<EventDesc>, event: Out<Handle<Event>>) -> ZeResult {
    call(|| {
        let pool = pool.get()?;
        let desc = desc.read()?;
        event.check()?;
        let slot = PoolSlot::take(pool, desc.index)?;
        let made = Event { signal: slot.signal(), origin: Origin::Pool(slot), scopes: [desc.signal, desc.wait] };
        event.write(Handle::register(Arc::new(made)))
    })
}

/// `zeEventCounterBasedCreate` (ze_api.h), and `zexCounterBasedEventCreate2` of Intel's driver: same shape. An event
/// that is to be shared cannot have timestamps.
pub extern "C" fn counter_based_create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<EventCounterBasedDesc>,
    event: Out<Handle<Event>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        device.get()?;
        let desc = desc.read()?;
        event.check()?;
        let flags = desc.flags;
        if flags & !FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let scopes = [desc.signal, desc.wait];
        let made = if flags & IPC == 0 {
            Event { signal: Signal::new(Kind::Counter), origin: Origin::Single { flags }, scopes }
        } else if flags & TIMESTAMP_FLAGS == 0 {
            Event::on(EventPage::new(Purpose::Event, Header { count: 1, flags, counters: true })?, scopes)
        } else {
            return Err(ZeResult::INVALID_ARGUMENT);
        };
        event.write(Handle::register(Arc::new(made)))
    })
}

/// `zeEventGetCounterBasedFlags` (ze_api.h): `INVALID_ARGUMENT` for an event that is not one by itself.
pub extern "C" fn get_counter_based_flags(event: Handle<Event>, flags: Out<u32>) -> ZeResult {
    call(|| match &event.get()?.origin {
        Origin::Single { flags: own } | Origin::EventPage { flags: own, .. } => flags.write(*own),
        Origin::Pool(_) => Err(ZeResult::INVALID_ARGUMENT),
    })
}

/// `zeEventCounterBasedGetDeviceAddress` (ze_api.h): where the counter of a shared event is, and what it comes to.
/// Other events have no place that a device could look at.
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

/// `zeEventDestroy` (ze_api.h). Work that waits for it goes on, because nobody can signal it any more.
pub extern "C" fn destroy(event: Handle<Event>) -> ZeResult {
    call_teardown(|| {
        event.retire()?.end();
        Ok(())
    })
}

/// `zeEventHostSignal` (ze_api.h): not for counter-based events.
pub extern "C" fn host_signal(event: Handle<Event>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        event.expect_flag()?;
        let now = clock::now();
        event.signal.complete(event.signal.submit(), Timestamps { start: now, end: now });
        Ok(())
    })
}

/// `zeEventHostReset` (ze_api.h): not for counter-based events.
pub extern "C" fn host_reset(event: Handle<Event>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        event.expect_flag()?;
        event.signal.reset();
        Ok(())
    })
}

/// `zeEventHostSynchronize` (ze_api.h): `timeout` in nanoseconds.
pub extern "C" fn host_synchronize(event: Handle<Event>, timeout: u64) -> ZeResult {
    call(|| {
        let event = event.get()?;
        match event.signal.wait(event.signal.wait_value(), clock::deadline(timeout)) {
            WaitResult::Completed | WaitResult::Abandoned => Ok(()),
            WaitResult::TimedOut => Err(ZeResult::NOT_READY),
        }
    })
}

/// `zeEventQueryStatus` (ze_api.h).
pub extern "C" fn query_status(event: Handle<Event>) -> ZeResult {
    call(|| if event.get()?.signal.is_signalled() { Ok(()) } else { Err(ZeResult::NOT_READY) })
}

/// `zeEventQueryKernelTimestamp` (ze_api.h): when the work behind the event began and ended, in ticks of the device.
pub extern "C" fn query_kernel_timestamp(event: Handle<Event>, result: Out<KernelTimestampResult>) -> ZeResult {
    call(|| result.write(kernel_timestamps(&*event.get()?).ok_or(ZeResult::NOT_READY)?))
}

/// `zeEventGetEventPool` (ze_api.h): `INVALID_ARGUMENT` for an event that has none.
pub extern "C" fn get_event_pool(event: Handle<Event>, pool: Out<Handle<EventPool>>) -> ZeResult {
    call(|| match &event.get()?.origin {
        Origin::Pool(slot) => pool.write(Handle::of(slot.pool())),
        Origin::Single { .. } | Origin::EventPage { .. } => Err(ZeResult::INVALID_ARGUMENT),
    })
}

/// `zeEventGetSignalScope` (ze_api.h).
pub extern "C" fn get_signal_scope(event: Handle<Event>, scope: Out<u32>) -> ZeResult {
    call(|| {
        let [signal, _] = event.get()?.scopes;
        scope.write(signal)
    })
}

/// `zeEventGetWaitScope` (ze_api.h).
pub extern "C" fn get_wait_scope(event: Handle<Event>, scope: Out<u32>) -> ZeResult {
    call(|| {
        let [_, wait] = event.get()?.scopes;
        scope.write(wait)
    })
}

/// The timestamps of the last work that signalled the event, `None` before that.
pub(crate) fn kernel_timestamps(event: &Event) -> Option<KernelTimestampResult> {
    let timestamps = event.signal.timestamps()?;
    let data = KernelTimestampData { kernel_start: timestamps.start, kernel_end: timestamps.end };
    Some(KernelTimestampResult { global: data, context: data })
}

impl Event {
    /// The counter-based event on a page of its own.
    pub(crate) fn on(page: Arc<EventPage>, scopes: [u32; 2]) -> Self {
        let (signal, flags) = (Signal::shared(Kind::Counter, Arc::clone(&page), 0), page.header().flags);
        Self { signal, origin: Origin::EventPage { flags, page }, scopes }
    }

    /// Its handle is gone: nobody can signal it here, take its place or open it any more.
    pub(crate) fn end(&self) {
        self.signal.abandon();
        match &self.origin {
            Origin::Pool(slot) => slot.release(),
            Origin::Single { .. } => {}
            Origin::EventPage { page, .. } => page.revoke(),
        }
    }

    /// Refuses what is not allowed on a counter-based event.
    pub(crate) fn expect_flag(&self) -> Outcome {
        if self.signal.is_counter() { Err(ZeResult::INVALID_ARGUMENT) } else { Ok(()) }
    }
}
