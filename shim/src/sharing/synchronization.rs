//! Calls that order commands, or show that some have completed: which of them leave a record.
//!
//! What they mean is for the tracker. A process that does not share memory leaves a record of its new queues only, and
//! of calls that are repeated while nothing else happens, as in a loop that polls, the first one leaves one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use urscope_schema::api::{Effect, Function, Promise, ResultCode};
use urscope_schema::{call::SyncKind, handle::Kind};

use super::commands::are_recorded;
use super::limit;
use crate::raw::args::inputs::{Inputs, NewQueue};
use crate::{chain, knobs};

/// How often something was recorded: commands, or what orders them.
static RECORDED: AtomicU64 = AtomicU64::new(1);

/// How often something was enqueued, recorded or not followed.
static ENQUEUED: AtomicU64 = AtomicU64::new(1);

/// What was recorded last, at a place that follows from what it is about: a hash of that, and of what was recorded or
/// enqueued by then.
static LATEST: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// Whether the program can order commands in a way that is not seen.
static IS_EXPOSED: AtomicBool = AtomicBool::new(false);

/// Whether the program has created a command list.
static HAS_LISTS: AtomicBool = AtomicBool::new(false);

/// The program can order commands in a way that is not seen, from now on.
#[cold]
pub(crate) fn expose() {
    IS_EXPOSED.store(true, Ordering::Relaxed);
    if are_recorded() {
        record(SyncKind::NotFollowed, None, None);
    }
}

/// The process begins to share memory.
pub(crate) fn begin_to_share() {
    if IS_EXPOSED.load(Ordering::Relaxed) || !knobs::read().races.0 {
        record(SyncKind::NotFollowed, None, None);
    }
    if HAS_LISTS.load(Ordering::Relaxed) {
        record(SyncKind::Shares, None, None);
    }
}

/// A queue or a command list is new.
#[cold]
fn note_queue(new: &NewQueue) {
    if new.is_native {
        expose();
    }
    if new.is_list {
        HAS_LISTS.store(true, Ordering::Relaxed);
    }
    let kind = match new.is_out_of_order {
        _ if new.is_list => SyncKind::List,
        Some(true) => SyncKind::OutOfOrder,
        Some(false) => SyncKind::InOrder,
        None => return,
    };
    ordered(kind, Some(new.handle), None);
}

/// A command is recorded.
#[inline]
pub(crate) fn command_recorded() {
    RECORDED.fetch_add(1, Ordering::Relaxed);
    ENQUEUED.fetch_add(1, Ordering::Relaxed);
}

/// Something is about to be enqueued that is not followed: in the queue of the call, or perhaps in any.
#[inline]
pub(crate) fn not_followed(effect: Effect, inputs: &Inputs) {
    let queue = queue(effect, inputs);
    let recorded = RECORDED.load(Ordering::Relaxed);
    // An event is for what its own call has enqueued.
    if is_first(SyncKind::NotFollowed, queue, None, recorded) || inputs.signals() {
        ENQUEUED.fetch_add(1, Ordering::Relaxed);
        record(SyncKind::NotFollowed, queue, None);
    }
}

/// A call is about to be made that is not recorded: it may order commands by what is not followed, perhaps those of any
/// queue.
#[inline]
pub(crate) fn before_unrecorded(effect: Effect, inputs: &Inputs) {
    if are_recorded() {
        before(inputs);
        let reveals_queue = matches!(effect, Effect::Reveals(Kind::Queue)) && inputs.events().next().is_none();
        if matches!(effect, Effect::Orders(_)) || reveals_queue {
            not_followed(effect, inputs);
        }
    }
}

/// A command is about to be enqueued that may wait for events.
#[inline]
pub(crate) fn before(inputs: &Inputs) {
    if are_recorded() {
        for event in inputs.wait_list() {
            ordered(SyncKind::WaitsFor, inputs.queue(), Some(event));
        }
    }
}

/// A call has returned, recorded or not, which may order commands or show that some have completed. `is_blocking` says
/// that it has waited for its own command.
#[inline]
pub(crate) fn after(function: Function, effect: Effect, inputs: &Inputs, result: ResultCode, is_blocking: bool) {
    if !result.is_success() {
        return;
    }
    match effect {
        Effect::Exposes(_) => expose(),
        Effect::Creates(Kind::Queue) => inputs.new_queue().iter().for_each(note_queue),
        _ => {}
    }
    if are_recorded() {
        match effect {
            Effect::Executes(_) => {
                inputs.lists().for_each(|list| ordered(SyncKind::Executes, inputs.queue(), Some(list)));
            }
            Effect::Clears(Kind::Queue) => ordered(SyncKind::Resets, inputs.queue(), None),
            Effect::Clears(_) | Effect::Destroys(Kind::Event) => {
                let list = inputs.queue().filter(|list| *list != 0);
                inputs.events().for_each(|event| ordered(SyncKind::Resets, list, Some(event)));
            }
            _ => {}
        }
        if effect == Effect::Signals(Kind::Queue)
            || effect == Effect::Signals(Kind::Event) && inputs.events().next().is_none()
        {
            ordered(SyncKind::Barrier, inputs.queue(), None);
        }
        if let Some(event) = inputs.signalled() {
            ordered(SyncKind::Signals, inputs.queue(), Some(event));
        }
        if is_blocking || effect.waits() || orders(effect) {
            synchronized(function, effect, inputs);
        }
    }
}

/// The queue that a call is about; `None` if it may be any.
fn queue(effect: Effect, inputs: &Inputs) -> Option<usize> {
    if effect.is_about_all_queues() { None } else { inputs.queue() }
}

const fn orders(effect: Effect) -> bool {
    matches!(effect, Effect::Signals(_) | Effect::Uses(Kind::Event) | Effect::Frees(_) | Effect::Closes(Kind::Usm))
}

#[inline(never)]
fn synchronized(function: Function, effect: Effect, inputs: &Inputs) {
    let queue = queue(effect, inputs);
    let kind = match effect {
        Effect::Signals(_) => return inputs.events().for_each(|event| ordered(SyncKind::Signals, queue, Some(event))),
        Effect::Uses(_) => return inputs.events().for_each(|event| ordered(SyncKind::WaitsFor, queue, Some(event))),
        Effect::Frees(_) | Effect::Closes(_) => {
            if function.interface().promises(Promise::EndsWait) || inputs.have_description() {
                completed(SyncKind::MayBeCompleted, None, None);
            }
            return;
        }
        Effect::Asks(_) if !inputs.shows_signalled() => return,
        Effect::Waits(_) | Effect::Asks(_) => SyncKind::Completed,
        _ => SyncKind::MayBeCompleted,
    };
    // A call about events is not about a queue.
    let mut events = inputs.events().peekable();
    if events.peek().is_none() {
        completed(kind, queue, None);
    }
    events.for_each(|event| completed(kind, None, Some(event)));
}

/// A queue signals an event, or waits for one, or something begins anew.
fn ordered(kind: SyncKind, queue: Option<usize>, event: Option<usize>) {
    command_recorded();
    record(kind, queue, event);
}

/// The host knows that commands have completed, or may know it.
fn completed(kind: SyncKind, queue: Option<usize>, event: Option<usize>) {
    if is_first(kind, queue, event, ENQUEUED.load(Ordering::Relaxed)) {
        RECORDED.fetch_add(1, Ordering::Relaxed);
        record(kind, queue, event);
    }
}

fn record(kind: SyncKind, queue: Option<usize>, event: Option<usize>) {
    if limit::is_reached() {
        return;
    }
    chain::synchronization(kind, queue.map(|queue| queue as u64), event.map(|event| event as u64));
}

/// Whether this was not recorded since something else was, which `by_then` counts.
#[inline]
fn is_first(kind: SyncKind, queue: Option<usize>, event: Option<usize>, by_then: u64) -> bool {
    let word = |of: Option<usize>| of.map_or(0, |handle| handle as u64 ^ 1);
    let about = (word(queue) ^ word(event).rotate_left(17) ^ (kind as u64) << 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (about ^ by_then).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let Some(latest) = LATEST.get((about >> 56) as usize) else { return true };
    let is_first = latest.load(Ordering::Relaxed) != hash;
    if is_first {
        latest.store(hash, Ordering::Relaxed);
    }
    is_first
}
