//! Passes a call through the layers, and switches off a layer that fails.
//!
//! trace(enter) -> validate(check, enter) -> backend -> validate(exit) -> trace(exit). A call that a layer answers
//! does not reach the following layers nor the backend; its exit is shown to all layers. A layer that panics is
//! switched off with one message. Most records of calls are written by [`trace::record_enter`] and
//! [`trace::record_exit`], which cannot panic, without the layer.

#![expect(clippy::inline_always, reason = "the row of a function decides which values there are")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use urscope_schema::api::{Function, ResultCode, demand::Nulls};
use urscope_schema::call::{Enter, Executed, Exit, SyncKind, Synchronization, Values};
use urscope_schema::trace::records::Device;

use crate::knobs::Hot;
use crate::layer::{Layer, Verdict, trace, validate};
use crate::raw::{clock, processes::fork_mark, stderr, threads::thread};

struct GuardedLayer {
    name: &'static str,
    layer: &'static dyn Layer,
    off: AtomicBool,
}

static LAYERS: [GuardedLayer; 2] =
    [GuardedLayer::new("trace", &trace::Trace), GuardedLayer::new("validation", &validate::Validate)];

/// A call that has been shown to the layers.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    /// The number of the call in its process, from 1 on.
    pub call: u64,
    /// The result if a layer answers the call, which must not be passed on then.
    pub answer: Option<ResultCode>,
}

/// Shows the enter of a call to every layer, until one answers it. `hot` are the settings that the call has read. A
/// call whose function is `KNOWN` to the compiler has its values in no memory.
#[inline(always)]
pub fn enter<const KNOWN: bool>(hot: Hot, function: Function, values: &Values, nulls: &Nulls) -> Entered {
    let call = thread::next_call();
    let time = clock::now();
    let enter = || Enter { function, call, tid: thread::id(), time, values: *values };
    let [trace_layer, validation_layer] = &LAYERS;
    if trace_layer.is_on() && !trace::record_enter::<KNOWN>(hot, function, call, time, values) {
        let _ = trace_layer.enter(enter(), &{ *nulls });
    }
    if validate::is_on(hot)
        && let Verdict::Answered(result) = validation_layer.enter(enter(), &{ *nulls })
    {
        return Entered { call, answer: Some(answer_of(function, result)) };
    }
    Entered { call, answer: None }
}

/// The answer of a layer, which has a code of Unified Runtime, in the codes of the function.
#[cold]
fn answer_of(function: Function, answer: ResultCode) -> ResultCode {
    function.interface().result(answer)
}

/// Describes a device to every layer.
pub fn device(device: &Device) {
    for layer in &LAYERS {
        layer.show(|layer| layer.device(device));
    }
}

/// Shows the exit of a call to every layer, the last one first; returns the result for the caller.
#[inline(always)]
pub fn exit<const KNOWN: bool>(
    hot: Hot,
    function: Function,
    call: u64,
    result: ResultCode,
    values: Option<&Values>,
) -> ResultCode {
    let time = clock::now();
    let exit = || Exit { function, call, tid: thread::id(), time, result, values: values.copied().unwrap_or_default() };
    let [trace_layer, validation_layer] = &LAYERS;
    if validate::is_on(hot)
        && let Verdict::Answered(result) = validation_layer.exit(exit())
    {
        return record(hot, &Exit { result: answer_of(function, result), values: Values::NONE, ..exit() });
    }
    if trace_layer.is_on() && !trace::record_exit::<KNOWN>(hot, function, call, time, result, values) {
        let _ = trace_layer.exit(exit());
    }
    result
}

/// Shows the exit of a call to every layer whose caller already has the result.
pub fn returned(hot: Hot, function: Function, call: u64, result: ResultCode, values: Values) {
    let exit = Exit { function, call, tid: thread::id(), time: clock::now(), result, values };
    let [_, validation_layer] = &LAYERS;
    if validate::is_on(hot) {
        let _ = validation_layer.exit(exit);
    }
    record(hot, &exit);
}

/// Shows the exit of a call to the trace; returns its result.
#[cold]
fn record(hot: Hot, exit: &Exit) -> ResultCode {
    let [trace_layer, _] = &LAYERS;
    let Exit { function, call, time, result, ref values, .. } = *exit;
    if trace_layer.is_on() && !trace::record_exit::<false>(hot, function, call, time, result, Some(values)) {
        let _ = trace_layer.exit(*exit);
    }
    result
}

/// Shows the enter of an inner call to the trace only; `call` is the number of its outer call.
#[cold]
pub fn inner_enter(function: Function, call: u64, values: Values) {
    let enter = Enter { function, call, tid: thread::id(), time: clock::now(), values };
    let [trace_layer, _] = &LAYERS;
    trace_layer.show(|_| trace::record_inner_enter(&enter));
}

/// Shows every layer what orders commands, or shows that some have completed.
#[cold]
pub fn synchronization(kind: SyncKind, queue: Option<u64>, event: Option<u64>) {
    let synchronization = Synchronization { tid: thread::id(), time: clock::now(), kind, queue, event };
    for layer in &LAYERS {
        layer.show(|layer| layer.synchronization(&synchronization));
    }
}

/// Shows the trace what the device has executed.
pub fn executed(executed: &Executed) {
    let [trace_layer, _] = &LAYERS;
    trace_layer.show(|_| trace::record_executed(executed));
}

/// Shows the exit of an inner call to the trace only.
#[cold]
pub fn inner_exit(function: Function, call: u64, result: ResultCode, values: Values) {
    let exit = Exit { function, call, tid: thread::id(), time: clock::now(), result, values };
    let [trace_layer, _] = &LAYERS;
    trace_layer.show(|_| trace::record_inner_exit(&exit));
}

/// Shows the end of the process to every layer, the last one first, so that its findings still go into the trace.
pub fn end(how: &'static str) {
    // A child of an unnoticed fork has made no call. A thread of its parent may have held a lock, also that of
    // malloc(3), which is never released here.
    if fork_mark::is_unnoticed() {
        return;
    }
    for layer in LAYERS.iter().rev() {
        layer.show(|layer| layer.end(how));
    }
}

/// Shows an `exec` of the process to every layer, before it and if it has `failed`.
pub fn exec(failed: bool) {
    for layer in &LAYERS {
        layer.show(|layer| layer.exec(failed));
    }
}

/// Switches off all layers.
pub fn switch_off() {
    for layer in &LAYERS {
        layer.off.store(true, Ordering::Relaxed);
    }
}

impl GuardedLayer {
    const fn new(name: &'static str, layer: &'static dyn Layer) -> Self {
        Self { name, layer, off: AtomicBool::new(false) }
    }

    #[inline]
    fn is_on(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    #[expect(clippy::large_types_passed_by_value, reason = "a reference would keep the values of every call in memory")]
    #[inline(never)]
    fn enter(&self, enter: Enter, nulls: &Nulls) -> Verdict {
        self.show(|layer| layer.enter(&enter, nulls)).unwrap_or(Verdict::Passed)
    }

    #[expect(clippy::large_types_passed_by_value, reason = "a reference would keep the values of every call in memory")]
    #[inline(never)]
    fn exit(&self, exit: Exit) -> Verdict {
        self.show(|layer| layer.exit(&exit)).unwrap_or(Verdict::Passed)
    }

    /// The answer of the layer; `None` if it is switched off or fails.
    fn show<T>(&self, what: impl Fn(&dyn Layer) -> T) -> Option<T> {
        if !self.is_on() {
            return None;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| what(self.layer))).ok();
        if answer.is_none() {
            self.fails();
        }
        answer
    }

    #[cold]
    fn fails(&self) {
        if !self.off.swap(true, Ordering::Relaxed) {
            stderr::say(&format!("the {} layer failed and is now off; the program continues without it", self.name));
        }
    }
}
