//! The order in which the layers see a call, and what happens when one of them fails.
//!
//! trace(enter) -> validate(check, enter) -> backend -> validate(exit) -> trace(exit). A call that a layer answers never
//! reaches those behind it, nor the backend; its exit is shown to all. A layer that panics is switched off, which is said once; the calls go on without it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use urscope_schema::{
    api::{Function, UrResult, demand::Nulls},
    call::{Enter, Exit, Values},
};

use crate::{
    layer::{Layer, Verdict, trace, validate},
    raw::{clock, thread},
};

struct GuardedLayer {
    name: &'static str,
    layer: &'static dyn Layer,
    off: AtomicBool,
}

static LAYERS: [GuardedLayer; 2] =
    [GuardedLayer::new("trace", &trace::Trace), GuardedLayer::new("validation", &validate::Validate)];

static CALLS: AtomicU64 = AtomicU64::new(0);

/// A call that has been shown to the layers.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    /// Its number.
    pub call: u64,
    /// What a layer answers to it; it must not be passed on then.
    pub answer: Option<UrResult>,
}

/// Shows a call that begins to every layer, until one answers it.
#[inline]
pub fn enter(function: Function, values: Values, nulls: &Nulls) -> Entered {
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let enter = Enter { function, call, tid: thread::id(), time: clock::now(), values };
    for layer in &LAYERS {
        if let Verdict::Answered(result) = layer.show(|layer| layer.enter(&enter, nulls)) {
            return Entered { call, answer: Some(result) };
        }
    }
    Entered { call, answer: None }
}

/// Shows a call that returned to every layer, the last one first; says what the caller gets.
#[inline]
pub fn exit(function: Function, call: u64, result: UrResult, values: Values) -> UrResult {
    let mut exit = Exit { function, call, tid: thread::id(), time: clock::now(), result, values };
    for layer in LAYERS.iter().rev() {
        if let Verdict::Answered(result) = layer.show(|layer| layer.exit(&exit)) {
            exit = Exit { result, values: Values::NONE, ..exit };
        }
    }
    exit.result
}

/// Shows the end of the process to every layer, the last one first: what it finds still belongs into the trace.
pub fn end(how: &'static str) {
    for layer in LAYERS.iter().rev() {
        let _ = layer.show(|layer| {
            layer.end(how);
            Verdict::Passed
        });
    }
}

/// Whether a layer looks at the arguments that are missing.
#[inline]
pub fn wants_nulls() -> bool {
    validate::is_on()
}

/// Counts calls from the start again: a forked child is a process of its own.
pub fn restart() {
    CALLS.store(0, Ordering::Relaxed);
}

impl GuardedLayer {
    const fn new(name: &'static str, layer: &'static dyn Layer) -> Self {
        Self { name, layer, off: AtomicBool::new(false) }
    }

    #[inline]
    fn show(&self, what: impl Fn(&dyn Layer) -> Verdict) -> Verdict {
        if self.off.load(Ordering::Relaxed) {
            return Verdict::Passed;
        }
        if let Ok(verdict) = catch_unwind(AssertUnwindSafe(|| what(self.layer))) {
            return verdict;
        }
        if !self.off.swap(true, Ordering::Relaxed) {
            crate::raw::stderr::say(&format!(
                "the {} layer failed and is switched off; the program goes on without it",
                self.name
            ));
        }
        Verdict::Passed
    }
}
