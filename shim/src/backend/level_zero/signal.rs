//! Signals of events that are used again, for adapters that know of none.
//!
//! A v2 adapter older than 2026.2 has its queues signal events of its own making only. So the queue signals one of those, a
//! list of ours waits for it and signals the event that was asked for, and the queue waits for that one before it goes
//! on: all that comes after finds it signalled. The queue's own list is never touched, because other threads may be using
//! it through the adapter.

use std::collections::HashMap;

use parking_lot::Mutex;
use urscope_schema::api::{
    UrResult,
    role::{Event, InOutEvent, Unseen, Unseen32},
};

use super::{
    LevelZero,
    driver::{Driver, ZeHandle, driver},
    result,
};
use crate::{backend::adapter, raw::fork_reset::ForkReset};

/// Where an event is signalled: the driver's context and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    context: usize,
    device: usize,
}

impl Place {
    pub(crate) fn new(context: ZeHandle, device: ZeHandle) -> Self {
        Self { context: context.expose_provenance(), device: device.expose_provenance() }
    }
}

/// Our lists.
static LISTS: ForkReset<Mutex<HashMap<Place, usize>>> = ForkReset::new(Mutex::default);

/// A driver's event that was released before it was signalled, and what ends it.
struct Released {
    place: Place,
    native: usize,
    end: End,
}

type End = fn(&Driver, ZeHandle);

static RELEASED: ForkReset<Mutex<Vec<Released>>> = ForkReset::new(Mutex::default);

/// In a forked child: its parent's lists are not its own.
pub(crate) fn after_fork_in_child() {
    LISTS.reset(Mutex::default());
    RELEASED.reset(Mutex::default());
}

/// Before the last release of a context.
pub(crate) fn end_of_context(ze_context: ZeHandle) {
    let context = ze_context.expose_provenance();
    let ended: Vec<usize> =
        LISTS.get().lock().extract_if(|place, _| place.context == context).map(|(_, list)| list).collect();
    for list in ended {
        driver().end_list(std::ptr::with_exposed_provenance_mut(list));
    }
    sweep(|released, _| released.place.context == context);
}

/// Ends a driver's event, as soon as nothing is left to signal it: a program may release an event while it is pending.
pub(crate) fn end(place: Place, native: usize, end: End) {
    RELEASED.get().lock().push(Released { place, native, end });
    sweep(|_, native| driver().is_signalled(native));
}

fn sweep(over: impl Fn(&Released, ZeHandle) -> bool) {
    let handle = |released: &Released| std::ptr::with_exposed_provenance_mut(released.native);
    let ended: Vec<_> = RELEASED.get().lock().extract_if(.., |released| over(released, handle(released))).collect();
    for released in ended {
        (released.end)(driver(), handle(&released));
    }
}

/// What a queue is asked to do: `urEnqueueEventsWaitWithBarrierExt` without the event.
#[derive(Clone, Copy)]
pub(crate) struct Barrier {
    pub(crate) queue: Unseen,
    pub(crate) properties: Unseen,
    pub(crate) count: Unseen32,
    pub(crate) events: Unseen,
}

impl Barrier {
    /// Has the adapter's queue do it, with a place for the event or none.
    pub(crate) fn enqueue(self, at: LevelZero, event: InOutEvent) -> Result<(), UrResult> {
        let Self { queue, properties, count, events } = self;
        result::done(adapter::urEnqueueEventsWaitWithBarrierExt(at.via)(queue, properties, count, events, event))
    }
}

/// Signals the event around `native` behind all that is in the queue.
pub(crate) fn behind(
    at: LevelZero,
    barrier: Barrier,
    event: usize,
    native: ZeHandle,
    place: Place,
) -> Result<(), UrResult> {
    let mut reached = 0_usize;
    barrier.enqueue(at, InOutEvent((&raw mut reached).expose_provenance()))?;
    // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
    let reached = unsafe { (&raw const reached).read_volatile() };
    if reached == 0 {
        return Err(UrResult::UNKNOWN);
    }
    let signalled =
        at.native().and_then(|adapter| adapter.event_behind(reached)).and_then(|first| signal(place, first, native));
    let _ = adapter::urEventRelease(at.via)(Event(reached));
    signalled?;
    let list = [event];
    let wait = Barrier {
        properties: Unseen(0),
        count: Unseen32(1),
        events: Unseen(list.as_ptr().expose_provenance()),
        ..barrier
    };
    wait.enqueue(at, InOutEvent(0))
}

/// Two threads must not append to one list at once, so this holds the lock.
fn signal(place: Place, first: ZeHandle, event: ZeHandle) -> Result<(), UrResult> {
    let mut lists = LISTS.get().lock();
    let list = if let Some(list) = lists.get(&place) {
        *list
    } else {
        let [context, device] = [place.context, place.device].map(std::ptr::with_exposed_provenance_mut);
        *lists.entry(place).or_insert(driver().make_list(context, device)?.expose_provenance())
    };
    driver().signal_behind(std::ptr::with_exposed_provenance_mut(list), first, event)
}
