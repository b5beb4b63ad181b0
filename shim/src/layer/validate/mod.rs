//! The validation layer: the rules, applied to this process while it runs.
//!
//! The same [`Tracker`] and [`Checker`] as the analyzer's take the calls of this one process, under a short lock that is never
//! held across the real call: before the call is passed on, and again when it has returned. Findings are reported after the
//! lock is released ([`report`]). The layer must never find what the analyzer does not find in the trace of the same process, so
//! it takes nothing that is not in the trace.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

use urscope_rules::{Checker, End, Process, ProcessId, Rights, Tracker};
use urscope_schema::{
    api::demand::Nulls,
    call::{Enter, Exit},
    trace::records::Device,
};

use super::{FindingSink, Layer, Verdict};
use crate::{
    knobs,
    raw::{
        clock, fork,
        fork_reset::ForkReset,
        interruptions,
        lock::{Held, Lock},
        process, reserve, stderr,
    },
};

mod frames;
mod report;

/// The layer.
pub struct Validate;

static STATE: ForkReset<Lock<State>> = ForkReset::new(Lock::default);

/// A call could not be followed, because a signal handler made it while this thread or another was in the tracker, or no memory is left. Nothing is checked
/// from then on: what follows could be misjudged. The analyzer judges the trace.
static MISSED: AtomicBool = AtomicBool::new(false);

/// What is known of this process.
#[derive(Default)]
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
            executable: header.executable,
            rank: header.rank,
            forked_from: self.parent.or(header.late.then_some(ProcessId::UNKNOWN)),
            forked_at: self.parent.and_then(|_| fork::own().map(|fork| fork.began)),
            rights: Rights::default(),
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

/// Sends all findings there, besides to stderr. Only the first call counts.
pub fn send_findings_to(sink: &'static dyn FindingSink) {
    report::send_findings_to(sink);
}

/// Whether the layer is switched on.
#[inline]
pub fn is_on() -> bool {
    knobs::read().validate.0 && !MISSED.load(Ordering::Relaxed)
}

impl Layer for Validate {
    fn enter(&self, enter: &Enter, nulls: &Nulls) -> Verdict {
        apply(|tracker, who, checker| tracker.enter_with(who, enter, nulls, checker))
    }

    fn device(&self, device: &Device) {
        let _ = apply(|tracker, who, _| tracker.device(who, device.device.0, device.index, &device.name));
    }

    fn exit(&self, exit: &Exit) -> Verdict {
        apply(|tracker, who, checker| tracker.exit(who, exit, checker))
    }

    fn end(&self, how: &'static str) {
        // `_exit` may be called in a signal handler, where nothing can be allocated; the analyzer finds what was left.
        if !is_on() || (how == "_exit" && process::may_be_in_signal_handler()) {
            return;
        }
        // A process without calls has nothing to report.
        let Some(state) = STATE.made() else { return };
        let _held_off = interruptions::hold_off();
        let mut found = Vec::new();
        let Some(mut state) = state.get() else { return };
        if state.over || state.pid != process::id() {
            return;
        }
        state.over = true;
        if let Some(who) = state.who {
            let State { tracker, checker, .. } = &mut *state;
            tracker.facts_of_end(who, End::Exited, clock::now(), checker);
            found = checker.take();
        }
        drop(state);
        report::at_end(&found);
    }
}

#[inline]
fn apply(step: impl FnOnce(&mut Tracker, ProcessId, &mut Checker)) -> Verdict {
    if !is_on() {
        return Verdict::Passed;
    }
    let mut found = Vec::new();
    let Some(mut state) = STATE.get().get() else {
        MISSED.store(true, Ordering::Relaxed);
        return Verdict::Passed;
    };
    if !state.over {
        let who = state.begun();
        let State { tracker, checker, .. } = &mut *state;
        step(tracker, who, checker);
        found = checker.take();
    }
    drop(state);
    if reserve::is_used() {
        no_memory_is_left();
    }
    if found.is_empty() { Verdict::Passed } else { report::found(&found) }
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

thread_local! {
    /// The lock, while this thread forks.
    static HELD: Cell<Option<Held<'static, State>>> = const { Cell::new(None) };
}

/// Takes the lock, so that the child does not inherit a tracker in the middle of a transition.
pub fn before_fork() {
    if is_on() {
        HELD.set(STATE.get().get());
    }
}

/// Releases the lock.
pub fn after_fork_in_parent() {
    HELD.set(None);
}

/// Continues with a copy of the parent's tracker, in which this process begins with its first call. What it has from its
/// parent is never held against it.
pub fn after_fork_in_child() {
    let mut state = State::default();
    // A fork that the C library did not notice took no lock. Where it cannot be had now, what the parent had is unknown.
    let parents = HELD.take().or_else(|| STATE.get().try_get());
    state.over = parents.is_none();
    if let Some(mut parents) = parents {
        state.tracker = std::mem::take(&mut parents.tracker);
        state.checker = std::mem::take(&mut parents.checker);
        state.parent = parents.who.or(parents.parent);
        // Unlocking it would wake threads that do not exist here.
        std::mem::forget(parents);
    }
    STATE.reset(Lock::new(state));
    report::after_fork_in_child();
}
