//! Entry points of events and event pools.
//!
//! What an event *is* stands in `signal`. Sharing events with other processes will be `event_ipc`, beside this file:
//! until then a pool or an event that asks for it is refused, because handing out one that cannot be shared would only
//! move the error. Must never signal an event on behalf of work: that is the stream's business.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::context::Context;
use crate::device::Device;
use crate::ffi::{In, Out};
use crate::layout::event::{
    EventCounterBasedDesc, EventDesc, EventPoolDesc, KernelTimestampData, KernelTimestampResult,
};
use crate::layout::stype;
use crate::registry::{Handle, Object, Registry};
use crate::result::{Answer, ZeResult, answer, answer_end};
use crate::signal::{Kind, Outcome, Signal, Stamps};
use crate::{clock, log};

/// `ZE_EVENT_POOL_FLAG_IPC`.
const POOL_IPC: u32 = 1 << 1;
/// `ZE_EVENT_COUNTER_BASED_FLAG_IPC`.
const COUNTER_IPC: u32 = 1 << 3;
/// All flags of a counter-based event: immediate, non-immediate, host visible, IPC, two kinds of timestamp, graphs.
const COUNTER_FLAGS: u32 = 0b111_1111;

/// An event pool: a number of places for events.
pub struct EventPool {
    context: Handle<Context>,
    flags: u32,
    counter_based: bool,
    /// Which places are taken: an index can be used again when its event is destroyed.
    taken: Mutex<Vec<bool>>,
}

/// An event.
pub struct Event {
    /// What is waited for.
    pub(crate) signal: Signal,
    place: Option<(Arc<EventPool>, u32)>,
    scopes: [u32; 2],
}

impl Object for EventPool {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<EventPool> = Registry::new();
        &LIVE
    }
}

impl Object for Event {
    fn registry() -> &'static Registry<Self> {
        static LIVE: Registry<Event> = Registry::new();
        &LIVE
    }
}

/// `zeEventPoolCreate` (ze_api.h).
pub extern "C" fn pool_create(
    context: Handle<Context>,
    desc: In<EventPoolDesc>,
    count: u32,
    devices: In<Handle<Device>>,
    pool: Out<Handle<EventPool>>,
) -> ZeResult {
    answer(|| {
        context.get()?;
        let counter_based = desc.has_next(stype::COUNTER_BASED_EVENT_POOL_EXP_DESC);
        let desc = desc.read()?;
        devices.objects(count)?;
        pool.check()?;
        if desc.count == 0 {
            return Err(ZeResult::INVALID_SIZE);
        }
        if desc.flags & POOL_IPC != 0 {
            log::note("zeEventPoolCreate: event pools cannot be shared between processes yet");
            return Err(ZeResult::UNSUPPORTED_FEATURE);
        }
        let taken = Mutex::new(vec![false; desc.count as usize]);
        pool.write(Handle::register(Arc::new(EventPool { context, flags: desc.flags, counter_based, taken })))
    })
}

/// `zeEventPoolDestroy` (ze_api.h). Events that are still alive keep what they need.
pub extern "C" fn pool_destroy(pool: Handle<EventPool>) -> ZeResult {
    answer_end(|| pool.retire().map(drop))
}

/// `zeEventPoolGetContextHandle` (ze_api.h).
pub extern "C" fn pool_get_context_handle(pool: Handle<EventPool>, context: Out<Handle<Context>>) -> ZeResult {
    answer(|| context.write(pool.get()?.context))
}

/// `zeEventPoolGetFlags` (ze_api.h).
pub extern "C" fn pool_get_flags(pool: Handle<EventPool>, flags: Out<u32>) -> ZeResult {
    answer(|| flags.write(pool.get()?.flags))
}

/// `zeEventCreate` (ze_api.h): `INVALID_ARGUMENT` for an index that is out of range or taken.
pub extern "C" fn create(pool: Handle<EventPool>, desc: In<EventDesc>, event: Out<Handle<Event>>) -> ZeResult {
    answer(|| {
        let pool = pool.get()?;
        let desc = desc.read()?;
        event.check()?;
        match pool.taken.lock().get_mut(desc.index as usize) {
            Some(taken) if !*taken => *taken = true,
            _ => return Err(ZeResult::INVALID_ARGUMENT),
        }
        let kind = if pool.counter_based { Kind::Counter } else { Kind::Flag };
        let made =
            Event { signal: Signal::new(kind), place: Some((pool, desc.index)), scopes: [desc.signal, desc.wait] };
        event.write(Handle::register(Arc::new(made)))
    })
}

/// `zeEventCounterBasedCreate` (ze_api.h), and `zexCounterBasedEventCreate2` of Intel's driver: same shape.
pub extern "C" fn counter_based_create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<EventCounterBasedDesc>,
    event: Out<Handle<Event>>,
) -> ZeResult {
    answer(|| {
        context.get()?;
        device.get()?;
        let desc = desc.read()?;
        event.check()?;
        if desc.flags & !COUNTER_FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        if desc.flags & COUNTER_IPC != 0 {
            log::note("zeEventCounterBasedCreate: events cannot be shared between processes yet");
            return Err(ZeResult::UNSUPPORTED_FEATURE);
        }
        let made = Event { signal: Signal::new(Kind::Counter), place: None, scopes: [desc.signal, desc.wait] };
        event.write(Handle::register(Arc::new(made)))
    })
}

/// `zeEventDestroy` (ze_api.h). Work that waits for it goes on, because nobody can signal it any more.
pub extern "C" fn destroy(event: Handle<Event>) -> ZeResult {
    answer_end(|| {
        let event = event.retire()?;
        event.signal.abandon();
        if let Some((pool, index)) = &event.place
            && let Some(taken) = pool.taken.lock().get_mut(*index as usize)
        {
            *taken = false;
        }
        Ok(())
    })
}

/// `zeEventHostSignal` (ze_api.h): not for counter-based events.
pub extern "C" fn host_signal(event: Handle<Event>) -> ZeResult {
    answer(|| {
        let event = event.get()?;
        event.expect_flag()?;
        let now = clock::now();
        event.signal.reach(event.signal.promise(), Stamps { start: now, end: now });
        Ok(())
    })
}

/// `zeEventHostReset` (ze_api.h): not for counter-based events.
pub extern "C" fn host_reset(event: Handle<Event>) -> ZeResult {
    answer(|| {
        let event = event.get()?;
        event.expect_flag()?;
        event.signal.reset();
        Ok(())
    })
}

/// `zeEventHostSynchronize` (ze_api.h): `timeout` in nanoseconds.
pub extern "C" fn host_synchronize(event: Handle<Event>, timeout: u64) -> ZeResult {
    answer(|| {
        let event = event.get()?;
        match event.signal.wait(event.signal.expected(), clock::deadline(timeout)) {
            Outcome::Reached | Outcome::Abandoned => Ok(()),
            Outcome::TimedOut => Err(ZeResult::NOT_READY),
        }
    })
}

/// `zeEventQueryStatus` (ze_api.h).
pub extern "C" fn query_status(event: Handle<Event>) -> ZeResult {
    answer(|| if event.get()?.signal.is_reached() { Ok(()) } else { Err(ZeResult::NOT_READY) })
}

/// `zeEventQueryKernelTimestamp` (ze_api.h): when the work behind the event began and ended, in ticks of the device.
pub extern "C" fn query_kernel_timestamp(event: Handle<Event>, result: Out<KernelTimestampResult>) -> ZeResult {
    answer(|| result.write(timestamps(&*event.get()?).ok_or(ZeResult::NOT_READY)?))
}

/// `zeEventGetEventPool` (ze_api.h): `INVALID_ARGUMENT` for an event that has none.
pub extern "C" fn get_event_pool(event: Handle<Event>, pool: Out<Handle<EventPool>>) -> ZeResult {
    answer(|| {
        let event = event.get()?;
        let (owner, _) = event.place.as_ref().ok_or(ZeResult::INVALID_ARGUMENT)?;
        pool.write(Handle::of(owner))
    })
}

/// `zeEventGetSignalScope` (ze_api.h).
pub extern "C" fn get_signal_scope(event: Handle<Event>, scope: Out<u32>) -> ZeResult {
    answer(|| {
        let [signal, _] = event.get()?.scopes;
        scope.write(signal)
    })
}

/// `zeEventGetWaitScope` (ze_api.h).
pub extern "C" fn get_wait_scope(event: Handle<Event>, scope: Out<u32>) -> ZeResult {
    answer(|| {
        let [_, wait] = event.get()?.scopes;
        scope.write(wait)
    })
}

/// The timestamps of the last work that signalled the event, `None` before that.
pub(crate) fn timestamps(event: &Event) -> Option<KernelTimestampResult> {
    let stamps = event.signal.stamps()?;
    let data = KernelTimestampData { kernel_start: stamps.start, kernel_end: stamps.end };
    Some(KernelTimestampResult { global: data, context: data })
}

impl Event {
    /// Refuses what is not allowed on a counter-based event.
    pub(crate) fn expect_flag(&self) -> Answer {
        if self.signal.is_counter() { Err(ZeResult::INVALID_ARGUMENT) } else { Ok(()) }
    }
}
