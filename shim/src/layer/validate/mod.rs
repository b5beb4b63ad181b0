//! The validation layer: the rules, applied to this process while it runs.
//!
//! The same [`Tracker`] and [`Checker`] as the analyzer's take the calls of this one process, under a short lock that is never
//! held across the real call: before the call is passed on, and again when it has returned. A thread that finds the lock held leaves a
//! copy of its step to the holder and goes on, unless what is found decides what becomes of the call. Findings are reported after the
//! lock is released ([`report`]). The layer must never find what the analyzer does not find in the trace of the same process, so
//! it takes nothing that is not in the trace.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
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
        backlog::Backlog,
        clock, fork,
        fork_reset::ForkReset,
        interruptions,
        lock::{Held, Lock},
        parked::Parked,
        process, reserve, stderr,
    },
};

mod frames;
mod report;

/// The layer.
pub struct Validate;

static STATE: ForkReset<Lock<State>> = ForkReset::new(Lock::default);

/// What threads have left to the holder of the lock, in the order in which they did.
static LEFT: Backlog<Left, PLACES> = Backlog::empty();

/// How many steps can be left. Where more come, threads wait for the lock.
const PLACES: usize = 128;

/// How often a thread takes what others have left before it returns to the program. What they leave after that is taken at the next call.
const ROUNDS: usize = 8;

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
    /// Its pid: a child of `vfork` shares our memory, and has another pid.
    pid: u32,
    /// The process that this one was forked from, if that had made calls.
    parent: Option<ProcessId>,
    /// It has ended: later calls come from the teardown of libraries.
    over: bool,
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

    /// Takes up to `most` steps that were left; false if one is left, because its thread is not ready or there are more.
    #[inline]
    fn catch_up(&mut self, most: usize) -> bool {
        LEFT.is_empty() || self.take_left(most)
    }

    #[cold]
    fn take_left(&mut self, most: usize) -> bool {
        (0..most).all(|_| LEFT.take(|left| self.take_packed(left)));
        LEFT.is_empty()
    }

    fn take_packed(&mut self, left: &Left) {
        let Some(call) = PackedCall::first_of(left) else { return };
        if call.enters() {
            self.take(Step::Enter(&call.enter(), &Nulls::default()));
        } else {
            self.take(Step::Exit(&call.exit()));
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
        let header = process::describe("", false, knobs::rank());
        self.pid = header.pid;
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

/// A step that is left to another thread: a packed call. A call with more values is not left.
type Left = [u64; 15];

impl Step<'_> {
    /// A copy, if another thread can take the step: nothing that is found changes the call, and the record has all that is known of it.
    fn to_leave(self) -> Option<Left> {
        match self {
            _ if knobs::read().on_error != OnError::Report => None,
            Self::Enter(enter, nulls) if *nulls == Nulls::default() => packed::enter_in(enter),
            Self::Exit(exit) => packed::exit_in(exit),
            Self::Enter(..) | Self::Device(_) => None,
        }
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
        let Some(state) = STATE.made() else { return };
        let _held_off = interruptions::hold_off();
        let Some(mut state) = all_taken(state) else { return };
        let mut found = state.checker.take();
        if state.over || state.pid != process::id() {
            return;
        }
        state.over = true;
        if let Some(who) = state.who {
            let State { tracker, checker, .. } = &mut *state;
            tracker.facts_of_end(who, End::Exited, clock::now(), checker);
            found.append(&mut checker.take());
        }
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
    let free = if LEFT.is_empty() { STATE.get().try_get() } else { None };
    let Some(mut state) = free else { return contended(step) };
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
    follow_usual(|tracker, who, checker| tracker.enter_usual(who, begins, checker))
}

/// Takes the return of a call that may be a usual one. False if it is to be taken in the general way.
#[inline]
pub fn returns_usually(returns: &Returns) -> bool {
    follow_usual(|tracker, who, checker| tracker.exit_usual(who, returns, checker))
}

/// Has this thread take a step in which nothing can be found, if nobody else is in the tracker.
#[inline]
fn follow_usual(take: impl Fn(&mut Tracker, ProcessId, &Checker) -> bool) -> bool {
    if !LEFT.is_empty() {
        return false;
    }
    let Some(mut state) = STATE.get().try_get() else { return false };
    let State { tracker, checker, who, over, .. } = &mut *state;
    let taken = !*over && who.is_some_and(|who| take(tracker, who, checker));
    if let Some(state) = state.give_back() {
        let _ = for_others(state, Vec::new());
    } else if reserve::is_used() {
        no_memory_is_left();
    }
    taken
}

/// Another thread is in the tracker, or has left a step.
#[cold]
fn contended(step: Step<'_>) -> Verdict {
    let lock = STATE.get();
    if let Some(left) = step.to_leave()
        && LEFT.add(left).is_ok()
    {
        return lock.get_or_notify().map_or(Verdict::Passed, |state| for_others(state, Vec::new()));
    }
    let Some(mut state) = all_taken(lock) else {
        MISSED.store(true, Ordering::Relaxed);
        return Verdict::Passed;
    };
    state.take(step);
    for_others(state, Vec::new())
}

/// The lock, when everything that had been left before has been taken; `None` if that does not come to pass. What others leave
/// meanwhile can wait.
fn all_taken(lock: &Lock<State>) -> Option<Held<'_, State>> {
    let mut state = lock.get()?;
    let (began, before) = (Instant::now(), LEFT.added());
    while !state.catch_up(PLACES) && !LEFT.has_taken(before) {
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
#[cold]
fn for_others(mut state: Held<'_, State>, mut found: Vec<Finding>) -> Verdict {
    for _ in 0..ROUNDS {
        let _ = state.catch_up(PLACES);
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
    STATE.reset(Lock::new(state));
    report::after_fork_in_child();
}
