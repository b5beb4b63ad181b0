//! Event pools and their slots, and the entry points about them.
//!
//! The events of a shared pool have their state on a shared event page, both in the process that created the pool and
//! in those that opened it. Each process manages its own slots. Must never reset an event of a pool that was opened:
//! only its creator does that.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::discovery::{context::Context, device::Device};
use crate::events::page::{EventPage, Header, Purpose};
use crate::events::signal::{Kind, Signal};
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{EventPoolDesc, stype};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown, getters};
use crate::ffi::{Argument, In, Out};

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
    /// Which slots are taken. A slot can be used again when its event has been destroyed.
    taken: Mutex<Vec<bool>>,
}

object!(EventPool);

impl EventPool {
    /// A pool whose events have their state on `page`, if there is one.
    pub(crate) fn new(context: Handle<Context>, header: Header, page: Option<Arc<EventPage>>) -> Arc<Self> {
        Arc::new(Self { context, header, page, taken: Mutex::new(vec![false; header.count as usize]) })
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
    /// Takes a slot: `INVALID_ARGUMENT` for an index that is out of range or taken.
    pub(crate) fn take(pool: Arc<EventPool>, index: u32) -> Outcome<Self> {
        match pool.taken.lock().get_mut(index as usize) {
            Some(taken) if !*taken => *taken = true,
            _ => return Err(ZeResult::INVALID_ARGUMENT),
        }
        Ok(Self { pool, index })
    }

    pub(crate) fn release(&self) {
        if let Some(taken) = self.pool.taken.lock().get_mut(self.index as usize) {
            *taken = false;
        }
    }

    /// The state of a new event in the slot: reset in a pool of this process, unchanged in an opened pool.
    pub(crate) fn signal(&self) -> Signal {
        let kind = if self.pool.header.counters { Kind::Counter } else { Kind::Flag };
        let Some(page) = &self.pool.page else { return Signal::new(kind) };
        let signal = Signal::shared(kind, Arc::clone(page), self.index);
        if !page.is_opened() {
            signal.reset();
        }
        signal
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
