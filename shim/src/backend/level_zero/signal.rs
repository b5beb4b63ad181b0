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
    role::{InOutEvent, Unseen, Unseen32},
};

use super::{
    LevelZero,
    driver::{Driver, ZeHandle, driver},
    result,
};
use crate::{
    backend::adapter,
    raw::{
        args::{Arg, caller::receive_event},
        fork_reset::ForkReset,
    },
};

/// Where an event is signalled: the driver's context and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    context: ZeHandle,
    device: ZeHandle,
}

impl Place {
    /// In that context, on that device.
    pub(crate) const fn new(context: ZeHandle, device: ZeHandle) -> Self {
        Self { context, device }
    }
}

/// Our lists.
static LISTS: ForkReset<Mutex<HashMap<Place, ZeHandle>>> = ForkReset::new(Mutex::default);

/// A driver's event that was released before it was signalled, and what ends it.
struct Released {
    place: Place,
    native: ZeHandle,
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
    let ended: Vec<ZeHandle> =
        LISTS.get().lock().extract_if(|place, _| place.context == ze_context).map(|(_, list)| list).collect();
    for list in ended {
        driver().end_list(list);
    }
    end_released(|released| released.place.context == ze_context);
}

/// Ends a driver's event, as soon as nothing is left to signal it: a program may release an event while it is pending.
pub(crate) fn end(place: Place, native: ZeHandle, end: End) {
    RELEASED.get().lock().push(Released { place, native, end });
    end_released(|released| driver().is_signalled(released.native));
}

fn end_released(which: impl Fn(&Released) -> bool) {
    let ended: Vec<_> = RELEASED.get().lock().extract_if(.., |released| which(released)).collect();
    for released in ended {
        (released.end)(driver(), released.native);
    }
}

/// What a queue is asked to do: `urEnqueueEventsWaitWithBarrierExt` without the event.
#[derive(Clone, Copy)]
pub(crate) struct Barrier {
    pub(crate) queue: Arg<Unseen>,
    pub(crate) properties: Arg<Unseen>,
    pub(crate) count: Arg<Unseen32>,
    pub(crate) events: Arg<Unseen>,
}

impl Barrier {
    /// Has the adapter's queue do it, with a place for the event or none.
    pub(crate) fn enqueue(self, at: LevelZero, event: Arg<InOutEvent>) -> Result<(), UrResult> {
        let Self { queue, properties, count, events } = self;
        result::done(adapter::urEnqueueEventsWaitWithBarrierExt(at.via)(queue, properties, count, events, event))
    }
}

/// Signals `native` behind everything that is in the queue; `event` holds the adapter's event around it.
pub(crate) fn behind(
    at: LevelZero,
    barrier: Barrier,
    event: Arg<InOutEvent>,
    native: ZeHandle,
    place: Place,
) -> Result<(), UrResult> {
    let enqueue = adapter::urEnqueueEventsWaitWithBarrierExt(at.via);
    let Barrier { queue, properties, count, events } = barrier;
    let reached = receive_event(|out| enqueue(queue, properties, count, events, out))?.ok_or(UrResult::UNKNOWN)?;
    let first = at.native().and_then(|adapter| adapter.event_behind(reached));
    let signalled = first.and_then(|first| signal(place, first, native));
    let _ = adapter::urEventRelease(at.via)(reached);
    signalled?;
    // SAFETY: the event that the caller's variable holds is one of ours, and the list of it is the caller's variable; a queue
    // needs no properties, and a wait for it no event.
    let (properties, count, events, no_event) = unsafe {
        (Arg::new(Unseen(0)), Arg::new(Unseen32(1)), Arg::new(Unseen(event.get().0)), Arg::new(InOutEvent(0)))
    };
    Barrier { queue, properties, count, events }.enqueue(at, no_event)
}

/// Has our list of that place signal `event` when `first` has been signalled. Two threads must not append to one list at once,
/// so this holds the lock.
fn signal(place: Place, first: ZeHandle, event: ZeHandle) -> Result<(), UrResult> {
    let mut lists = LISTS.get().lock();
    let list = match lists.get(&place) {
        Some(list) => *list,
        None => *lists.entry(place).or_insert(driver().make_list(place.context, place.device)?),
    };
    driver().signal_behind(list, first, event)
}
