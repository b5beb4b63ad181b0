//! The order in which the layers see a call, and what happens when one of them fails.
//!
//! trace(enter) -> validate(check, enter) -> backend -> validate(exit) -> trace(exit). A call that a layer answers does not reach
//! the layers behind it nor the backend; its exit is shown to all layers. A layer that panics is switched off with one message,
//! and calls go on without it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use urscope_schema::{
    api::{Function, UrResult, demand::Nulls},
    call::{Enter, Exit, Values},
    trace::records::Device,
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
    /// The number of the call in its process, from 1 on.
    pub call: u64,
    /// The result with which a layer answers the call. It must not be passed on then.
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

/// Describes a device to every layer.
pub fn device(device: &Device) {
    for layer in &LAYERS {
        let _ = layer.show(|layer| {
            layer.device(device);
            Verdict::Passed
        });
    }
}

/// Shows a call that returned to every layer, the last one first; gives the result for the caller.
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

/// Shows the end of the process to every layer, the last one first, so that what it finds still goes into the trace.
pub fn end(how: &'static str) {
    for layer in LAYERS.iter().rev() {
        let _ = layer.show(|layer| {
            layer.end(how);
            Verdict::Passed
        });
    }
}

/// Shows every layer that the process is about to become another program, or that this has `failed`.
pub fn exec(failed: bool) {
    for layer in &LAYERS {
        let _ = layer.show(|layer| {
            layer.exec(failed);
            Verdict::Passed
        });
    }
}

/// Whether a layer checks for missing arguments.
#[inline]
pub fn wants_nulls() -> bool {
    validate::is_on()
}

/// Has all calls pass unseen from now on.
pub fn switch_off() {
    for layer in &LAYERS {
        layer.off.store(true, Ordering::Relaxed);
    }
}

/// Numbers calls from 1 again, in a forked child.
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
                "the {} layer failed and is now off; the program continues without it",
                self.name
            ));
        }
        Verdict::Passed
    }
}
