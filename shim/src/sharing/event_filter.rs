//! Decides which calls are recorded. Calls about events are if the event is shared, or can be.
//!
//! A SYCL program makes and releases an event for every command. An event is watched from its creation with the IPC
//! flag, or its open, until its last release. Other calls about events cost one comparison.

#![expect(clippy::inline_always, reason = "decided when it is compiled: the effect is mostly a constant")]

use std::sync::atomic::{AtomicUsize, Ordering};

use urscope_schema::api::{Effect, Function, ResultCode};
use urscope_schema::{call::Values, handle::Kind};

use super::{commands, lists::ListedAccess};
use crate::raw::{
    args::inputs::{Arguments, Inputs},
    memory::hash_map::HashMap,
    processes::fork_reset::ForkReset,
    threads::mutex::RwLock,
};

/// The watched events and their reference counts.
static WATCHED: ForkReset<RwLock<HashMap<usize, u32>>> = ForkReset::new(RwLock::default);

/// The number of watched events, which is read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether a call is recorded, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    /// The call is only passed on.
    No,
    /// The call is recorded.
    Yes,
    /// The call is recorded because of this event.
    For(usize),
    /// The call is recorded as a command; a launch has these pointers into shared memory.
    Command([Option<u64>; 2]),
    /// The call is recorded as a launch whose pointers are not known.
    UnknownLaunch,
    /// The call is recorded because it executes this access of a command list, to memory that has ended.
    Execution(ListedAccess),
}

impl Recording {
    /// The event that the call is recorded for.
    pub(crate) fn event(self) -> Option<usize> {
        match self {
            Self::For(event) => Some(event),
            Self::No | Self::Yes | Self::Command(_) | Self::UnknownLaunch | Self::Execution(_) => None,
        }
    }
}

/// Whether no call of a function with this effect is recorded now, whatever its arguments are: nothing is shared that
/// it could be about, it is a wait, or it makes a queue.
#[inline(always)]
fn passes_any(effect: Effect) -> bool {
    if is_about_events(effect) {
        !effect.is_ipc() && COUNT.load(Ordering::Acquire) == 0
    } else {
        effect.waits()
            || effect.is_never_recorded()
            || (effect.is_command() || effect.submits() || effect.executes()) && !commands::are_recorded()
    }
}

const fn is_about_events(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Asks(Kind::Event)
            | Effect::Uses(Kind::Event)
            | Effect::Waits(Kind::Event)
            | Effect::Signals(Kind::Event)
            | Effect::Retains(Kind::Event)
    ) || ends_event(effect)
}

/// Whether a call ends an event, or gives a reference to it back.
const fn ends_event(effect: Effect) -> bool {
    matches!(effect, Effect::Releases(Kind::Event) | Effect::Destroys(Kind::Event) | Effect::Closes(Kind::Event))
}

/// Whether a call with these arguments is recorded, and why.
#[inline(always)]
pub(crate) fn recording(effect: Effect, arguments: &Arguments) -> Recording {
    if arguments.are_watched() { decide(effect, arguments.inputs()) } else { Recording::No }
}

/// Whether a call is recorded.
///
/// Every call of an IPC function is: with an event that cannot be shared, it is a violation.
#[inline(always)]
fn decide(effect: Effect, inputs: &Inputs) -> Recording {
    if passes_any(effect) {
        return Recording::No;
    }
    if !is_about_events(effect) {
        if effect.is_command() {
            return commands::recorded(effect, inputs);
        }
        if effect.executes() {
            return commands::executed_after_end(inputs).map_or(Recording::No, Recording::Execution);
        }
        return Recording::Yes;
    }
    // Also a close of an event that was not opened.
    let otherwise = if effect.is_ipc() { Recording::Yes } else { Recording::No };
    if COUNT.load(Ordering::Acquire) == 0 {
        return otherwise;
    }
    let watched = WATCHED.get().read();
    inputs.first_event(|event| watched.contains_key(&event)).map_or(otherwise, Recording::For)
}

/// Updates the watched events when a call begins. The last release removes the event here, because its address may be
/// reused before the release returns.
#[inline(always)]
pub(crate) fn enter(effect: Effect, event: Option<usize>) {
    if let Some(event) = event.filter(|_| ends_event(effect)) {
        let mut watched = WATCHED.get().write();
        if let Some(references) = watched.get_mut(&event) {
            *references -= 1;
            if *references == 0 {
                watched.remove(&event);
            }
        }
        COUNT.store(watched.len(), Ordering::Release);
    }
}

/// Updates the watched events when a call has returned. `flags` is an argument of the call.
#[inline(always)]
pub(crate) fn exit(
    function: Function,
    effect: Effect,
    event: Option<usize>,
    flags: Option<u64>,
    result: ResultCode,
    answers: &Values,
) {
    if !result.is_success() {
        return;
    }
    match (effect, event, answers.object) {
        (Effect::Opens(Kind::Event), _, Some(made)) => watch(made),
        (Effect::Creates(Kind::Event), _, Some(made)) => {
            let how = function.interface().shareable(Kind::Event);
            if how.zip(flags).is_some_and(|(how, flags)| flags & how.flag != 0) {
                watch(made);
            }
        }
        (Effect::Retains(Kind::Event), Some(event), _) => {
            if let Some(references) = WATCHED.get().write().get_mut(&event) {
                *references += 1;
            }
        }
        _ => {}
    }
}

/// Watches an event that was made or opened.
fn watch(made: u64) {
    let mut watched = WATCHED.get().write();
    watched.insert(made as usize, 1);
    COUNT.store(watched.len(), Ordering::Release);
}

/// Replaces the events in a forked child by a copy, because a thread that holds the lock does not exist there. If a
/// thread was changing the events, the copy is empty, and the child's calls about them are not recorded.
pub(crate) fn after_fork_in_child() {
    let inherited = WATCHED.get().try_read().map(|watched| watched.clone()).unwrap_or_default();
    COUNT.store(inherited.len(), Ordering::Release);
    WATCHED.reset(RwLock::new(inherited));
}

#[cfg(test)]
mod tests {
    use urscope_schema::api::unified_runtime::constants::UR_EXP_EVENT_FLAG_IPC_EXP;

    const IPC: u64 = UR_EXP_EVENT_FLAG_IPC_EXP as u64;

    use super::*;

    fn about(event: usize) -> Inputs {
        Inputs::of_event(event)
    }

    /// One test, because the events of a process are one set.
    #[test]
    fn an_event_is_watched_from_the_call_that_shares_it_to_its_last_release() {
        let create = Function::urEventCreateExp;
        let open = Function::urIPCOpenEventHandleExp;
        let retain = Function::urEventRetain;
        let release = Function::urEventRelease;
        let decide = |function: Function, inputs: &Inputs| decide(function.effect(), inputs);
        let enter = |function: Function, event| enter(function.effect(), event);
        let exit = |function: Function, event, flags, result, answers: &Values| {
            exit(function, function.effect(), event, flags, result, answers);
        };
        let made = |object| Values { object: Some(object), ..Values::NONE };
        assert_eq!(decide(release, &about(7)), Recording::No);
        exit(create, None, Some(0), ResultCode::SUCCESS, &made(7));
        assert_eq!(decide(release, &about(7)), Recording::No, "made without the flag");
        exit(create, None, Some(IPC), ResultCode::INVALID_ARGUMENT, &made(7));
        assert_eq!(decide(release, &about(7)), Recording::No, "not made at all");
        assert_eq!(decide(Function::urIPCGetEventHandleExp, &about(7)), Recording::Yes, "a violation");

        exit(create, None, Some(IPC), ResultCode::SUCCESS, &made(7));
        exit(open, None, None, ResultCode::SUCCESS, &made(8));
        assert_eq!(decide(release, &about(7)), Recording::For(7));
        assert_eq!(
            decide(Function::urEventWait, &Inputs::of_events(&[1, 8, 7])),
            Recording::For(8),
            "the first that is shared"
        );

        exit(retain, Some(7), None, ResultCode::SUCCESS, &Values::NONE);
        enter(release, Some(7));
        assert_eq!(decide(release, &about(7)), Recording::For(7), "one reference is left");
        enter(release, Some(7));
        assert_eq!(decide(release, &about(7)), Recording::No);
        after_fork_in_child();
        assert_eq!(decide(release, &about(8)), Recording::For(8));
        enter(release, Some(8));
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
