//! The order in which the layers see a call, and what happens when one of them fails.
//!
//! A layer that panics is switched off, which is said once; the calls go on without it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use urscope_schema::{
    api::{Function, UrResult},
    call::{Enter, Exit, Values},
};

use crate::{
    layer::{Layer, trace},
    raw::{clock, thread},
};

struct Switched {
    name: &'static str,
    layer: &'static dyn Layer,
    off: AtomicBool,
}

static LAYERS: [Switched; 1] = [Switched { name: "trace", layer: &trace::Trace, off: AtomicBool::new(false) }];

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Shows a call that begins to every layer; returns its number.
#[inline]
pub fn enter(function: Function, values: Values) -> u64 {
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let enter = Enter { function, call, tid: thread::id(), time: clock::now(), values };
    for layer in &LAYERS {
        layer.show(|layer| layer.enter(&enter));
    }
    call
}

/// Shows a call that returned to every layer, the last one first.
#[inline]
pub fn exit(function: Function, call: u64, result: UrResult, values: Values) {
    let exit = Exit { function, call, tid: thread::id(), time: clock::now(), result, values };
    for layer in LAYERS.iter().rev() {
        layer.show(|layer| layer.exit(&exit));
    }
}

/// Counts calls from the start again: a forked child is a process of its own.
pub fn restart() {
    CALLS.store(0, Ordering::Relaxed);
}

impl Switched {
    #[inline]
    fn show(&self, what: impl Fn(&dyn Layer)) {
        if self.off.load(Ordering::Relaxed) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| what(self.layer))).is_err() && !self.off.swap(true, Ordering::Relaxed) {
            crate::raw::stderr::say(&format!(
                "the {} layer failed and is switched off; the program goes on without it",
                self.name
            ));
        }
    }
}
