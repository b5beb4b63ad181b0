//! The validation layer: the rules, applied to this process while it runs.
//!
//! The same [`Tracker`] and [`Checker`] as the analyzer's take the calls of this one process, under a lock that is
//! never held across the real call: before the call is passed on, and again when it has returned. What is found is
//! reported in that call, after the lock is released ([`report`]). The layer must never find what the analyzer does
//! not find in the trace of the same process, so it takes nothing that is not in the trace.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use urscope_rules::{Checker, End, Process, ProcessId, Tracker};
use urscope_schema::{
    api::demand::Nulls,
    call::{Enter, Exit},
    trace::records::Device,
};

use super::{FindingSink, Layer, Verdict};
use crate::{
    knobs::{self, Hot},
    raw::{
        clock, fork, fork_lock::ForkLock, fork_reset::ForkReset, interruptions, lock::Lock, process, reserve, stderr,
    },
};

mod frames;
mod report;

/// The layer.
pub struct Validate;

static VALIDATION: ForkReset<Lock<Validation>> = ForkReset::new(|| {
    OWNER.store(process::id(), Ordering::Relaxed);
    Lock::default()
});

/// The process whose state that is: a child of `vfork` shares our memory.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// A call could not be followed. Nothing is checked from then on: what follows could be misjudged. The analyzer
/// judges the trace.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// What is known of this process.
#[derive(Default)]
struct Validation {
    tracker: Tracker,
    checker: Checker,
    /// This process in the tracker, from its first call on.
    process_id: Option<ProcessId>,
    /// The process that this one was forked from, if that had made calls.
    parent: Option<ProcessId>,
    /// It has ended: later calls come from the teardown of libraries.
    ended: bool,
}

impl Validation {
    fn apply(&mut self, step: Step<'_>) {
        if self.ended {
            return;
        }
        let process_id = self.process_id();
        let Self { tracker, checker, .. } = self;
        match step {
            Step::Enter(enter, nulls) => tracker.enter_with(process_id, enter, nulls, checker),
            Step::Device(device) => tracker.device(process_id, device.device.0, device.index, &device.name),
            Step::Exit(exit) => tracker.exit(process_id, exit, checker),
        }
    }

    fn process_id(&mut self) -> ProcessId {
        match self.process_id {
            Some(process_id) => process_id,
            None => self.begin(),
        }
    }

    #[cold]
    fn begin(&mut self) -> ProcessId {
        let _held_off = interruptions::hold_off();
        let header = process::describe("", false, knobs::rank());
        let process_id = self.tracker.begin(Process {
            pid: header.pid,
            start: header.start,
            host: 0,
            executable: header.executable.into(),
            rank: header.rank,
            forked_from: self.parent.or(header.late.then_some(ProcessId::UNKNOWN)),
            forked_at: self.parent.and_then(|_| fork::own().map(|fork| fork.began)),
            rights: Arc::default(),
        });
        // What the child has from its parent is known now; nothing more comes from the parent into this copy of the
        // tracker.
        if let Some(parent) = self.parent {
            self.tracker.end(parent, End::Running, clock::now(), &mut self.checker);
            self.checker.take();
        }
        self.process_id = Some(process_id);
        process_id
    }
}

/// A step of the tracker.
#[derive(Clone, Copy)]
enum Step<'a> {
    Enter(&'a Enter, &'a Nulls),
    Device(&'a Device),
    Exit(&'a Exit),
}

/// Sends all findings there, besides to stderr. Only the first call counts.
pub fn send_findings_to(sink: &'static dyn FindingSink) {
    report::send_findings_to(sink);
}

/// Whether the layer is switched on.
#[inline]
pub fn is_on(hot: Hot) -> bool {
    hot.validates() && !IS_STOPPED.load(Ordering::Relaxed)
}

impl Layer for Validate {
    fn enter(&self, enter: &Enter, nulls: &Nulls) -> Verdict {
        check(Step::Enter(enter, nulls))
    }

    fn device(&self, device: &Device) {
        let _ = check(Step::Device(device));
    }

    fn exit(&self, exit: &Exit) -> Verdict {
        check(Step::Exit(exit))
    }

    fn end(&self, how: &'static str) {
        // `_exit` may be called in a signal handler, where nothing can be allocated; the analyzer finds what was left.
        if !is_on(knobs::hot()) || (how == "_exit" && process::may_be_in_signal_handler()) {
            return;
        }
        // A process without calls has nothing to report.
        let Some(state) = VALIDATION.made().filter(|_| OWNER.load(Ordering::Relaxed) == process::id()) else { return };
        let _held_off = interruptions::hold_off();
        let Some(mut state) = state.get() else { return };
        let mut found = state.checker.take();
        // A forked child without calls leaves what its parent has found to the parent.
        let Validation { tracker, checker, process_id: Some(process_id), ended: ended @ false, .. } = &mut *state
        else {
            return;
        };
        *ended = true;
        tracker.facts_of_end(*process_id, End::Exited, clock::now(), checker);
        found.append(&mut checker.take());
        drop(state);
        report::report_end(&found);
    }
}

/// Takes a step, and reports what it finds.
fn check(step: Step<'_>) -> Verdict {
    if !is_on(knobs::hot()) {
        return Verdict::Passed;
    }
    let Some(mut state) = VALIDATION.get().get() else {
        stop(
            "a call could not be checked, because a signal handler made it inside the check of another call, or a thread has not left its \
             check for 3 s: from here on the process is not checked while it runs; `urscope check` judges its trace",
        );
        return Verdict::Passed;
    };
    state.apply(step);
    let found = state.checker.take();
    drop(state);
    if reserve::is_used() {
        // What the process does from now on may need more memory to follow than there is.
        stop(
            "no memory is left: from here on the process is not checked while it runs, and its calls have no call stacks; \
             `urscope check` judges its trace",
        );
    }
    if found.is_empty() { Verdict::Passed } else { report::report_call(&found) }
}

/// Ends the validation of this process, and says why.
#[cold]
fn stop(why: &str) {
    if !IS_STOPPED.swap(true, Ordering::Relaxed) {
        stderr::say(why);
    }
}

/// The lock, while a thread forks.
static FORK_LOCK: ForkLock<Validation> = ForkLock::new();

/// Takes the lock, so that the child does not inherit a tracker in the middle of a transition.
pub fn before_fork() {
    if is_on(knobs::hot())
        && let Some(held) = VALIDATION.get().get()
    {
        FORK_LOCK.put(held);
    }
}

/// Releases the lock.
pub fn after_fork_in_parent() {
    drop(FORK_LOCK.take());
}

/// Continues with a copy of the parent's tracker, in which this process begins with its first call. What it has from
/// its parent is never held against it.
pub fn after_fork_in_child() {
    let mut state = Validation::default();
    // A fork that the C library did not notice took no lock. Where it cannot be had now, what the parent had is
    // unknown.
    let parents = FORK_LOCK.take_in_child().or_else(|| VALIDATION.get().try_get());
    state.ended = parents.is_none();
    if state.ended {
        // The thread may go on with a step that a handler has interrupted.
        IS_STOPPED.store(true, Ordering::Relaxed);
    }
    if let Some(mut parents) = parents {
        state.tracker = std::mem::take(&mut parents.tracker);
        state.checker = std::mem::take(&mut parents.checker);
        state.parent = parents.process_id.or(parents.parent);
        // Unlocking it would wake threads that do not exist here.
        std::mem::forget(parents);
    }
    OWNER.store(process::id(), Ordering::Relaxed);
    VALIDATION.reset(Lock::new(state));
    report::after_fork_in_child();
}
