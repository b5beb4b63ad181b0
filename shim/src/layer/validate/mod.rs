//! The validation layer: the rules, applied to this process while it runs.
//!
//! The analyzer's [`Tracker`] and [`Checker`] process the calls of this process, before the real call and after it,
//! under a lock that is never held across it. Findings are reported in the call, after the lock is released
//! ([`report`]). The layer must never find what the analyzer does not find in the trace of the process, so it uses
//! only what is in the trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use urscope_rules::{Checker, End, Process, ProcessId, Tracker};
use urscope_schema::call::{Enter, Exit, Synchronization};
use urscope_schema::{api::demand::Nulls, trace::records::Device};

use super::{Layer, Verdict};
use crate::knobs::{self, Hot};
use crate::raw::files::kept_descriptors;
use crate::raw::processes::{fork, fork_reset::ForkReset, process};
use crate::raw::threads::{fork_lock::ForkLock, lock::Lock};
use crate::raw::{clock, memory::reserve, signals::interruptions, stderr, symbols::modules};

mod frames;
mod report;

pub use report::send_findings_to;

/// The layer.
pub struct Validate;

static VALIDATION: ForkReset<Lock<Validation>> = ForkReset::new(|| {
    OWNER.store(process::id(), Ordering::Relaxed);
    Lock::default()
});

/// The process that owns the state: a child of `vfork` shares the memory.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether a call could not be checked. Nothing is checked from then on, because findings could be wrong; the
/// analyzer checks the trace.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// The state of the validation of this process.
#[derive(Default)]
struct Validation {
    tracker: Tracker,
    checker: Checker,
    /// This process in the tracker, from its first call on.
    process_id: Option<ProcessId>,
    /// The process that forked this one, if it had made calls.
    parent: Option<ProcessId>,
    /// Whether the process has ended: later calls come from the teardown of libraries.
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
            Step::Enter(enter, nulls) => {
                tracker.enter(process_id, &enter.begun(nulls), checker);
            }
            Step::Device(Device { device, native, index, name, .. }) => {
                tracker.device(process_id, device.0, native.as_ref().map(|native| native.0), *index, name);
            }
            Step::Exit(exit) => tracker.exit(process_id, &exit.returned(), checker),
            Step::Synchronization(by) => tracker.synchronization(process_id, by, checker),
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
        let header = process::describe("", false, knobs::job().rank, modules::came_late());
        let process_id = self.tracker.begin(Process {
            pid: header.pid,
            start: header.start,
            host: 0,
            executable: header.executable.into(),
            rank: header.rank,
            parent: Some(header.parent),
            forked_from: self.parent.or(header.late.then_some(ProcessId::UNKNOWN)),
            started: self.parent.and_then(|_| fork::own().map(|fork| fork.began)),
            rights: Arc::default(),
        });
        // The child has inherited its objects; this copy of the tracker gets no more calls of the parent.
        if let Some(parent) = self.parent {
            self.tracker.end(parent, End::Running, clock::now(), &mut self.checker);
            self.checker.take();
        }
        self.process_id = Some(process_id);
        process_id
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Enter(&'a Enter, &'a Nulls),
    Device(&'a Device),
    Exit(&'a Exit),
    Synchronization(&'a Synchronization),
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

    fn synchronization(&self, by: &Synchronization) {
        let _ = check(Step::Synchronization(by));
    }

    fn end(&self, how: &'static str) {
        // `_exit` may be called in a signal handler, which cannot allocate; the analyzer finds the leaks.
        if !is_on(knobs::hot()) || (how == "_exit" && process::may_be_in_signal_handler()) {
            return;
        }
        // A process without calls has nothing to report.
        let Some(state) = VALIDATION.made().filter(|_| OWNER.load(Ordering::Relaxed) == process::id()) else { return };
        let _held_off = interruptions::hold_off();
        let Some(mut state) = state.get() else { return };
        let mut found = state.checker.take();
        // A forked child without calls has no findings.
        let Validation { tracker, checker, process_id: Some(process_id), ended: ended @ false, .. } = &mut *state
        else {
            return;
        };
        *ended = true;
        for descriptor in kept_descriptors::still_open().numbers() {
            tracker.keeps(*process_id, *descriptor);
        }
        tracker.facts_of_end(*process_id, End::Exited, clock::now(), checker);
        found.append(&mut checker.take());
        drop(state);
        report::report_end(&found);
    }
}

/// Processes a step, and reports its findings.
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
        // The tracker may need more memory than there is.
        stop(
            "no memory is left: from here on the process is not checked while it runs, and its calls have no call stacks; \
             `urscope check` judges its trace",
        );
    }
    if found.is_empty() { Verdict::Passed } else { report::report_call(&found) }
}

/// Ends the validation of this process, with a message.
#[cold]
fn stop(why: &str) {
    if !IS_STOPPED.swap(true, Ordering::Relaxed) {
        stderr::say(why);
    }
}

/// Holds the lock while a thread forks.
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

/// Continues with a copy of the parent's tracker. The process begins in it with its first call; inherited objects
/// cause no findings.
pub fn after_fork_in_child() {
    let mut state = Validation::default();
    // An unnoticed fork took no lock. If the lock is not free, the parent's state is unknown.
    let parents = FORK_LOCK.take_in_child().or_else(|| VALIDATION.get().try_get());
    state.ended = parents.is_none();
    if state.ended {
        // A handler may have interrupted a step of this thread, which continues it.
        IS_STOPPED.store(true, Ordering::Relaxed);
    }
    if let Some(mut parents) = parents {
        state.tracker = std::mem::take(&mut parents.tracker);
        state.checker = std::mem::take(&mut parents.checker);
        state.parent = parents.process_id.or(parents.parent);
        // The lock belongs to the parent's state, which is never used again.
        std::mem::forget(parents);
    }
    OWNER.store(process::id(), Ordering::Relaxed);
    VALIDATION.reset(Lock::new(state));
    report::after_fork_in_child();
}
