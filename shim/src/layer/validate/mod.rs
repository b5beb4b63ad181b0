//! The validation layer: the rules, applied to this process while it runs.
//!
//! The same [`Tracker`] and [`Checker`] as the analyzer's take the calls of this one process, under a short lock that is never
//! held across the real call: before the call is passed on, and again when it has returned. While one thread makes all calls, it takes its
//! own. Among others, a thread leaves a copy of its step and goes on, unless what is found decides what becomes of the call; gets and puts
//! wait there until there are many, and other steps are taken at once, by whoever holds the lock. Findings are reported after the
//! lock is released ([`report`]). The layer must never find what the analyzer does not find in the trace of the same process, so
//! it takes nothing that is not in the trace.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use urscope_rules::{
    Checker, End, Finding, Process, ProcessId, Tracker,
    tracker::usual::{Begins, Returns},
};
use urscope_schema::{
    api::demand::Nulls,
    call::{Enter, Exit},
    packed::{self, PackedCall},
    trace::records::Device,
};

use super::{FindingSink, Layer, Verdict};
use crate::{
    knobs::{self, Hot, OnError},
    raw::{
        backlog::{Added, Backlog, Timed},
        clock, fork,
        fork_reset::ForkReset,
        interruptions,
        lock::{Held, Lock},
        parked::Parked,
        process, reserve, stderr,
        symbols::modules,
        thread,
    },
};

mod frames;
mod left;
mod report;

use left::Left;

/// The layer.
pub struct Validate;

static STATE: ForkReset<Lock<State>> = ForkReset::new(|| {
    OWNER.store(process::id(), Ordering::Relaxed);
    Lock::default()
});

/// The process whose state that is: a child of `vfork` shares our memory.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// What threads have left to the holder of the lock.
static LEFT: Backlog<Left, QUEUES, PLACES> = Backlog::empty();

/// How many threads can leave steps without sharing memory for that, and how many each can leave. Where more come, threads wait for the lock.
const QUEUES: usize = 64;
const PLACES: usize = 128;

/// How many steps of calls that may be usual a thread leaves before it has them taken, with those of others. The tracker's memory goes from one
/// processor's cache to another's once for all of them.
const MANY: u64 = 64;

/// How long such a step is left at most while the process makes calls.
const SOON: Duration = Duration::from_micros(100);

/// How many steps are taken at a time, and how often, before a thread returns to the program. What is left after that is taken at the next call.
const AT_A_TIME: usize = 1024;
const ROUNDS: usize = 8;

/// From how many steps on without one of another thread in between a thread is alone.
const ALONE: u32 = 256;

/// How long a thread waits for another one that takes a step. If that one was interrupted, it looks at who is alone after that.
const A_STEP: Duration = Duration::from_micros(100);

/// How long a thread waits for another one that is about to leave a step.
const PATIENCE: Duration = Duration::from_secs(3);

/// A call could not be followed, because a signal handler made it while this thread was in the tracker, another thread did not leave the
/// tracker, or no memory is left. Nothing is checked from then on: what follows could be misjudged. The analyzer judges the trace.
static MISSED: AtomicBool = AtomicBool::new(false);

/// What is known of this process. Threads that wait for the lock or leave steps do not touch the lines of the cache that it is in.
#[derive(Default)]
#[repr(align(64))]
struct State {
    tracker: Tracker,
    checker: Checker,
    /// This process in the tracker, from its first call on.
    who: Option<ProcessId>,
    /// The process that this one was forked from, if that had made calls.
    parent: Option<ProcessId>,
    /// It has ended: later calls come from the teardown of libraries.
    over: bool,
    /// The thread of the latest step that was left, and how many steps before it were of the same one.
    latest: (u32, u32),
}

impl State {
    #[inline]
    fn take(&mut self, step: Step<'_>) {
        if self.over {
            return;
        }
        let who = self.begun();
        let Self { tracker, checker, .. } = self;
        match step {
            Step::Enter(enter, nulls) => tracker.enter_with(who, enter, nulls, checker),
            Step::Device(device) => tracker.device(who, device.device.0, device.index, &device.name),
            Step::Exit(exit) => tracker.exit(who, exit, checker),
        }
    }

    /// Takes the steps that were left up to now; false if one is left, because its thread was interrupted or there are too many.
    fn catch_up(&mut self) -> bool {
        let all = LEFT.take(clock::now().0, AT_A_TIME, |left| self.take_left(left));
        let (thread, steps) = self.latest;
        if all && steps > ALONE {
            self.latest.1 = 0;
            LEFT.leave_alone(thread);
        }
        all
    }

    fn take_left(&mut self, left: &Left) {
        let thread = left.thread();
        if thread == self.latest.0 {
            self.latest.1 += 1;
        } else {
            self.latest = (thread, 0);
        }
        if self.takes_usually(left) {
            return;
        }
        match left {
            Left::Call(words) => match PackedCall::first_of(words) {
                Some(call) if call.enters() => self.take(Step::Enter(&call.enter(), &Nulls::default())),
                Some(call) => self.take(Step::Exit(&call.exit())),
                None => {}
            },
            Left::Begins(begins) => self.take(Step::Enter(&begins.record(), &Nulls::default())),
            Left::Returns(returns) => self.take(Step::Exit(&returns.record())),
        }
    }

    /// Takes a step in which nothing can be found. False if it is none.
    #[inline]
    fn takes_usually(&mut self, left: &Left) -> bool {
        let Self { tracker, checker, who: Some(who), over: false, .. } = self else { return false };
        match left {
            Left::Begins(begins) => tracker.enter_usual(*who, begins, checker),
            Left::Returns(returns) => tracker.exit_usual(*who, returns, checker),
            Left::Call(_) => false,
        }
    }

    #[inline]
    fn begun(&mut self) -> ProcessId {
        match self.who {
            Some(who) => who,
            None => self.begin(),
        }
    }

    #[cold]
    fn begin(&mut self) -> ProcessId {
        let _held_off = interruptions::hold_off();
        let header = process::describe("", false, knobs::rank(), modules::came_late());
        let who = self.tracker.begin(Process {
            pid: header.pid,
            start: header.start,
            host: 0,
            executable: header.executable.into(),
            rank: header.rank,
            forked_from: self.parent.or(header.late.then_some(ProcessId::UNKNOWN)),
            forked_at: self.parent.and_then(|_| fork::own().map(|fork| fork.began)),
            rights: Arc::default(),
        });
        // What the child has from its parent is known now; nothing more comes from the parent into this copy of the tracker.
        if let Some(parent) = self.parent {
            self.tracker.end(parent, End::Running, clock::now(), &mut self.checker);
            self.checker.take();
        }
        self.who = Some(who);
        who
    }
}

/// A step of the tracker.
#[derive(Clone, Copy)]
enum Step<'a> {
    Enter(&'a Enter, &'a Nulls),
    Device(&'a Device),
    Exit(&'a Exit),
}

/// Whether steps can be left: nothing that is found changes what becomes of a call.
#[inline]
fn may_leave() -> bool {
    knobs::read().on_error == OnError::Report
}

impl Step<'_> {
    /// A copy, if another thread can take the step, and the record has all that is known of it.
    fn to_leave(self) -> Option<Left> {
        let packed = match self {
            _ if !may_leave() => None,
            Self::Enter(enter, nulls) if *nulls == Nulls::default() => packed::enter_in(enter),
            Self::Exit(exit) => packed::exit_in(exit),
            Self::Enter(..) | Self::Device(_) => None,
        };
        packed.map(Left::Call)
    }
}

/// Sends all findings there, besides to stderr. Only the first call counts.
pub fn send_findings_to(sink: &'static dyn FindingSink) {
    report::send_findings_to(sink);
}

/// Whether the layer is switched on.
#[inline]
pub fn is_on(hot: Hot) -> bool {
    hot.validates() && !MISSED.load(Ordering::Relaxed)
}

impl Layer for Validate {
    fn enter(&self, enter: &Enter, nulls: &Nulls) -> Verdict {
        follow(Step::Enter(enter, nulls))
    }

    fn device(&self, device: &Device) {
        let _ = follow(Step::Device(device));
    }

    fn exit(&self, exit: &Exit) -> Verdict {
        follow(Step::Exit(exit))
    }

    fn end(&self, how: &'static str) {
        // `_exit` may be called in a signal handler, where nothing can be allocated; the analyzer finds what was left.
        if !is_on(knobs::hot()) || (how == "_exit" && process::may_be_in_signal_handler()) {
            return;
        }
        // A process without calls has nothing to report.
        let Some(state) = STATE.made().filter(|_| OWNER.load(Ordering::Relaxed) == process::id()) else { return };
        let _held_off = interruptions::hold_off();
        let Some(mut state) = all_taken(state) else { return };
        let mut found = state.checker.take();
        // A forked child without calls leaves what its parent has found to the parent.
        let State { tracker, checker, who: Some(who), over: over @ false, .. } = &mut *state else { return };
        *over = true;
        tracker.facts_of_end(*who, End::Exited, clock::now(), checker);
        found.append(&mut checker.take());
        drop(state);
        report::at_end(&found);
    }
}

/// Has a step taken, by this thread or by the one that holds the lock.
#[inline]
fn follow(step: Step<'_>) -> Verdict {
    if !is_on(knobs::hot()) {
        return Verdict::Passed;
    }
    let Some(mut state) = alone(thread::id()) else { return among_others(step) };
    state.take(step);
    let found = state.checker.take();
    match state.give_back() {
        None => reported(&found),
        Some(state) => for_others(state, found),
    }
}

/// Takes the begin of a call that may be a usual one. False if it is to be taken in the general way.
#[inline]
pub fn begins_usually(begins: &Begins) -> bool {
    let thread = begins.tid();
    match alone(thread) {
        Some(state) => takes_usually(thread, state, |tracker, who, checker| tracker.enter_usual(who, begins, checker)),
        None => leave_usual(Left::Begins(*begins)),
    }
}

/// Takes the return of a call that may be a usual one. False if it is to be taken in the general way.
#[inline]
pub fn returns_usually(returns: &Returns) -> bool {
    let thread = returns.tid();
    match alone(thread) {
        Some(state) => takes_usually(thread, state, |tracker, who, checker| tracker.exit_usual(who, returns, checker)),
        None => leave_usual(Left::Returns(*returns)),
    }
}

/// Has this thread, which is alone, take a step in which nothing can be found.
#[inline]
fn takes_usually(
    thread: u32,
    mut state: Held<'_, State>,
    take: impl Fn(&mut Tracker, ProcessId, &Checker) -> bool,
) -> bool {
    let State { tracker, checker, who, over, .. } = &mut *state;
    let taken = !*over && who.is_some_and(|who| take(tracker, who, checker));
    // By a store, which is half of what the lock costs. A notice is lost in it, but [`after_adding`] waits for a thread that is alone.
    drop(state);
    if !LEFT.is_alone(thread) {
        let _ = leave_to_holder();
    } else if reserve::is_used() {
        no_memory_is_left();
    }
    taken
}

/// Leaves a step in which nothing can be found, as a rule, until there are more. False if it is to be taken in the general way: the last ones
/// were taken long ago, or there is no place for it.
fn leave_usual(left: Left) -> bool {
    let since = left.time().nanos().saturating_sub(LEFT.taken_until());
    if u128::from(since) > SOON.as_nanos() || !may_leave() {
        return false;
    }
    let Ok(added) = LEFT.add(thread::id(), left) else { return false };
    if added.has_ended_alone || added.waiting >= MANY {
        // What is found changes nothing.
        let _ = after_adding(added);
    }
    true
}

/// Has a step taken that was added, and all others that are left, by this thread or by the one that holds the lock.
fn after_adding(added: Added) -> Verdict {
    // A thread that was alone may be about to give the lock back without a look at a notice. It is in a single step.
    let waited_for = if added.has_ended_alone { STATE.get().get_within(A_STEP) } else { None };
    waited_for.map_or_else(leave_to_holder, |state| for_others(state, Vec::new()))
}

/// Has what is left taken by this thread or by the one that holds the lock.
#[cold]
#[inline(never)]
fn leave_to_holder() -> Verdict {
    STATE.get().get_or_notify().map_or(Verdict::Passed, |state| for_others(state, Vec::new()))
}

/// The lock, if this thread, which has that number, is alone and so can take its steps itself.
#[inline]
fn alone(thread: u32) -> Option<Held<'static, State>> {
    if !LEFT.is_alone(thread) {
        return None;
    }
    let state = STATE.get().try_get_as(thread)?;
    // Asked again under the lock, because its last holder may have found a step when it let this thread alone.
    if LEFT.is_alone(thread) {
        return Some(state);
    }
    let _ = for_others(state, Vec::new());
    None
}

/// Another thread is in the tracker, or was lately.
#[inline(never)]
fn among_others(step: Step<'_>) -> Verdict {
    if let Some(mut state) = caught_up() {
        state.take(step);
        return for_others(state, Vec::new());
    }
    let lock = STATE.get();
    if let Some(left) = step.to_leave()
        && let Ok(added) = LEFT.add(thread::id(), left)
    {
        return after_adding(added);
    }
    let Some(mut state) = all_taken(lock) else {
        MISSED.store(true, Ordering::Relaxed);
        return Verdict::Passed;
    };
    state.take(step);
    for_others(state, Vec::new())
}

/// The lock, if it is free and everything that was left could be taken.
#[inline(never)]
fn caught_up() -> Option<Held<'static, State>> {
    let mut state = STATE.get().try_get()?;
    if state.catch_up() {
        return Some(state);
    }
    let _ = for_others(state, Vec::new());
    None
}

/// The lock, when everything that had been left before has been taken; `None` if that does not come to pass. What others leave
/// meanwhile can wait.
fn all_taken(lock: &Lock<State>) -> Option<Held<'_, State>> {
    let mut state = lock.get()?;
    let began = Instant::now();
    while !state.catch_up() {
        // A handler may have interrupted the thread that is about to leave a step: this one.
        let patience = if process::may_be_in_signal_handler() { PATIENCE / 30 } else { PATIENCE };
        if began.elapsed() > patience {
            return None;
        }
        std::thread::yield_now();
    }
    Some(state)
}

/// Takes what others have left, gives the lock back, and reports what was found.
#[inline(never)]
fn for_others(mut state: Held<'_, State>, mut found: Vec<Finding>) -> Verdict {
    for _ in 0..ROUNDS {
        let _ = state.catch_up();
        found.append(&mut state.checker.take());
        match state.give_back() {
            Some(notified) => state = notified,
            None => return reported(&found),
        }
    }
    drop(state);
    reported(&found)
}

/// Reports what a step has found, without the lock.
#[inline]
fn reported(found: &[Finding]) -> Verdict {
    if reserve::is_used() {
        no_memory_is_left();
    }
    if found.is_empty() { Verdict::Passed } else { report::found(found) }
}

/// What the process does from now on may need more memory to follow than there is.
#[cold]
fn no_memory_is_left() {
    if !MISSED.swap(true, Ordering::Relaxed) {
        stderr::say(
            "no memory is left: from here on the process is not checked while it runs, and its calls have no call stacks; \
             `urscope check` judges its trace",
        );
    }
}

/// The lock, while a thread forks.
static HELD: Parked<State> = Parked::new();

/// Takes the lock, so that the child does not inherit a tracker in the middle of a transition.
pub fn before_fork() {
    if is_on(knobs::hot())
        && let Some(held) = all_taken(STATE.get())
    {
        HELD.put(held);
    }
}

/// Releases the lock.
pub fn after_fork_in_parent() {
    if let Some(state) = HELD.take() {
        let _ = for_others(state, Vec::new());
    }
}

/// Continues with a copy of the parent's tracker, in which this process begins with its first call. What it has from its
/// parent is never held against it.
pub fn after_fork_in_child() {
    let mut state = State::default();
    // A fork that the C library did not notice took no lock. Where it cannot be had now, what the parent had is unknown.
    let parents = HELD.take_in_child().or_else(|| STATE.get().try_get());
    state.over = parents.is_none();
    if state.over {
        // The thread may go on with a step that a handler has interrupted.
        MISSED.store(true, Ordering::Relaxed);
    }
    if let Some(mut parents) = parents {
        state.tracker = std::mem::take(&mut parents.tracker);
        state.checker = std::mem::take(&mut parents.checker);
        state.parent = parents.who.or(parents.parent);
        // Unlocking it would wake threads that do not exist here.
        std::mem::forget(parents);
    }
    // The calls of threads that do not exist here.
    LEFT.clear();
    OWNER.store(process::id(), Ordering::Relaxed);
    STATE.reset(Lock::new(state));
    report::after_fork_in_child();
}
