//! Event pools and their slots, and the entry points about them.
//!
//! The events of a shared pool have their state on a shared event page, both in the process that created the pool and
//! in those that opened it. Each process manages its own slots. Must never reset an event of a pool that was opened:
//! only its creator does that.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::discovery::{context::Context, device::Device};
use crate::events::page::{EventPage, Header, Purpose};
use crate::events::signal::{Kind, Signal};
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{EventPoolDesc, stype};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown, getters};
use crate::ffi::{Argument, In, Out};
use crate::platform::log;

/// `ZE_EVENT_POOL_FLAG_IPC`.
const IPC: u32 = 1 << 1;
/// All flags of an event pool: host visible, IPC, and two kinds of timestamp.
const FLAGS: u32 = 0b1111;

/// The object of a `ze_event_pool_handle_t`.
pub struct EventPool {
    context: Handle<Context>,
    header: Header,
    /// Holds the state of its events if the pool is shared.
    pub(crate) page: Option<Arc<EventPage>>,
    slots: Mutex<Vec<Slot>>,
}

/// The place of an event in a pool.
#[derive(Clone, Default)]
struct Slot {
    events: u32,
    /// The state of the event, or of all events.
    signal: Weak<Signal>,
}

object!(EventPool);

impl EventPool {
    /// A pool whose events have their state on `page`, if there is one.
    pub(crate) fn new(context: Handle<Context>, header: Header, page: Option<Arc<EventPage>>) -> Arc<Self> {
        Arc::new(Self { context, header, page, slots: Mutex::new(vec![Slot::default(); header.count as usize]) })
    }

    fn signal(&self, index: u32) -> Signal {
        let kind = if self.header.counters { Kind::Counter } else { Kind::Flag };
        let shared = self.page.as_ref().map(|page| Signal::shared(kind, Arc::clone(page), index));
        shared.unwrap_or_else(|| Signal::new(kind))
    }

    pub(crate) fn is_opened(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.is_opened())
    }
}

pub(crate) struct PoolSlot {
    pub(crate) pool: Arc<EventPool>,
    index: u32,
}

impl PoolSlot {
    /// Takes a slot, and returns it with the state of a new event: reset in a pool of this process, unchanged in an
    /// opened pool. `INVALID_ARGUMENT` for an index that is out of range. An event whose index is taken shares the
    /// state of the one there, as with Intel's driver: Intel SHMEM 1.6.0 makes such events.
    pub(crate) fn take(pool: Arc<EventPool>, index: u32) -> Outcome<(Self, Arc<Signal>)> {
        let signal = {
            let mut slots = pool.slots.lock();
            let slot = slots.get_mut(index as usize).ok_or(ZeResult::INVALID_ARGUMENT)?;
            slot.events += 1;
            if slot.events > 1 {
                log::note_once(
                    "zeEventCreate",
                    "makes an event at an index that another event has: they share one state",
                );
            }
            let signal = slot.signal.upgrade().unwrap_or_else(|| Arc::new(pool.signal(index)));
            slot.signal = Arc::downgrade(&signal);
            signal
        };
        if !pool.is_opened() {
            signal.reset();
        }
        Ok((Self { pool, index }, signal))
    }

    /// Gives the slot back. True if no other event has it.
    pub(crate) fn release(&self) -> bool {
        let mut slots = self.pool.slots.lock();
        slots.get_mut(self.index as usize).is_none_or(|slot| {
            slot.events -= 1;
            if slot.events == 0 {
                // The next event has a state of its own. A weak reference also keeps the memory.
                *slot = Slot::default();
            }
            slot.events == 0
        })
    }
}

/// `zeEventPoolCreate` (ze_api.h).
pub extern "C" fn create(
    context: Handle<Context>,
    desc: In<EventPoolDesc>,
    count: Argument<u32>,
    devices: In<Handle<Device>>,
    pool: Out<Handle<EventPool>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let counters = desc.has_next(stype::COUNTER_BASED_EVENT_POOL_EXP_DESC);
        let desc = desc.read()?;
        devices.objects(count)?;
        pool.check()?;
        if desc.count == 0 {
            return Err(ZeResult::INVALID_SIZE);
        }
        if desc.flags & !FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let header = Header { count: desc.count, flags: desc.flags, counters };
        let page = if desc.flags & IPC == 0 { None } else { Some(EventPage::new(Purpose::Pool, header)?) };
        pool.write(Handle::register(EventPool::new(context, header, page)))
    })
}

/// `zeEventPoolDestroy` (ze_api.h). Live events keep what they need. `INVALID_ARGUMENT` for a pool that was opened.
pub extern "C" fn destroy(pool: Handle<EventPool>) -> ZeResult {
    call_teardown(|| {
        if pool.get()?.is_opened() {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        if let Some(page) = &pool.retire()?.page {
            page.revoke();
        }
        Ok(())
    })
}

getters! {
    zeEventPoolGetContextHandle: get_context_handle(pool: EventPool) -> Handle<Context> { pool.context }
    zeEventPoolGetFlags: get_flags(pool: EventPool) -> u32 { pool.header.flags }
}
