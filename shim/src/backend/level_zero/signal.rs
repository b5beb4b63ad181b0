//! Signals events again, for adapters that cannot.
//!
//! The queues of a v2 adapter before 2026.2 signal only events that it made itself. So the queue signals such an
//! event, a command list of this module waits for it and signals the program's event, and the queue waits for that
//! before it continues. The queue's own command list must never be used, because other threads may be using it
//! through the adapter.

use urscope_schema::api::ResultCode;
use urscope_schema::api::role::{InOutEvent, Queue, Unseen, WaitList, WaitListLength};

use super::driver::{Driver, ZeHandle, driver};
use super::{LevelZero, result};
use crate::backend::adapter;
use crate::raw::args::{Arg, caller::receive_event};
use crate::raw::{memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};

/// The driver's context and device that signal an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SignalDevice {
    context: ZeHandle,
    device: ZeHandle,
}

impl SignalDevice {
    pub(crate) const fn new(context: ZeHandle, device: ZeHandle) -> Self {
        Self { context, device }
    }
}

/// The command lists that signal events.
static LISTS: ForkReset<Mutex<HashMap<SignalDevice, ZeHandle>>> = ForkReset::new(Mutex::default);

/// An event of the driver that was released before it was signalled, and the function that ends it.
struct PendingRelease {
    signal_device: SignalDevice,
    native: ZeHandle,
    end: End,
}

type End = fn(&Driver, ZeHandle);

static PENDING_RELEASES: ForkReset<Mutex<Vec<PendingRelease>>> = ForkReset::new(Mutex::default);

/// Forgets the parent's lists and events.
pub(crate) fn after_fork_in_child() {
    LISTS.reset(Mutex::default());
    PENDING_RELEASES.reset(Mutex::default());
}

/// Ends the lists and events of a context before its last release.
pub(crate) fn end_context(ze_context: ZeHandle) {
    let ended: Vec<ZeHandle> = LISTS
        .get()
        .lock()
        .extract_if(|signal_device, _| signal_device.context == ze_context)
        .map(|(_, list)| list)
        .collect();
    for list in ended {
        driver().end_list(list);
    }
    end_signalled(|released| released.signal_device.context == ze_context);
}

/// Ends an event of the driver when it is signalled: a program may release a pending event.
pub(crate) fn end(signal_device: SignalDevice, native: ZeHandle, end: End) {
    PENDING_RELEASES.get().lock().push(PendingRelease { signal_device, native, end });
    end_signalled(|released| driver().is_signalled(released.native));
}

fn end_signalled(which: impl Fn(&PendingRelease) -> bool) {
    let ended: Vec<_> = PENDING_RELEASES.get().lock().extract_if(.., |released| which(released)).collect();
    for released in ended {
        (released.end)(driver(), released.native);
    }
}

/// The arguments of `urEnqueueEventsWaitWithBarrierExt` without the event.
#[derive(Clone, Copy)]
pub(crate) struct Barrier {
    pub(crate) queue: Arg<Queue>,
    pub(crate) properties: Arg<Unseen>,
    pub(crate) count: Arg<WaitListLength>,
    pub(crate) events: Arg<WaitList>,
}

impl Barrier {
    /// Calls the adapter, with an out-parameter for the event or null.
    pub(crate) fn enqueue(self, at: LevelZero, event: Arg<InOutEvent>) -> Result<(), ResultCode> {
        let Self { queue, properties, count, events } = self;
        result::done(adapter::urEnqueueEventsWaitWithBarrierExt(at.via)(queue, properties, count, events, event))
    }
}

/// Signals `native` after all commands in the queue. `event` holds the adapter's event that wraps it.
pub(crate) fn signal_after(
    at: LevelZero,
    barrier: Barrier,
    event: Arg<InOutEvent>,
    native: ZeHandle,
    signal_device: SignalDevice,
) -> Result<(), ResultCode> {
    let enqueue = adapter::urEnqueueEventsWaitWithBarrierExt(at.via);
    let Barrier { queue, properties, count, events } = barrier;
    let reached = receive_event(|out| enqueue(queue, properties, count, events, out))?.ok_or(ResultCode::UNKNOWN)?;
    let first = at.native().and_then(|adapter| adapter.driver_event(reached));
    let signalled = first.and_then(|first| signal(signal_device, first, native));
    let _ = adapter::urEventRelease(at.via)(reached);
    signalled?;
    // SAFETY: the caller's variable is a list of one valid event; the properties and the out-parameter may be null.
    let (properties, count, events, no_event) = unsafe {
        (Arg::new(Unseen(0)), Arg::new(WaitListLength(1)), Arg::new(WaitList(event.get().0)), Arg::new(InOutEvent(0)))
    };
    Barrier { queue, properties, count, events }.enqueue(at, no_event)
}

/// Appends to the device's list: wait for `first`, then signal `event`. It holds the lock, because two threads must
/// not append to a list at once.
fn signal(signal_device: SignalDevice, first: ZeHandle, event: ZeHandle) -> Result<(), ResultCode> {
    let mut lists = LISTS.get().lock();
    let list = match lists.get(&signal_device) {
        Some(list) => *list,
        None => *lists.entry(signal_device).or_insert(driver().make_list(signal_device.context, signal_device.device)?),
    };
    driver().signal_after(list, first, event)
}
