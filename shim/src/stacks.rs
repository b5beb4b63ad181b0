//! Numbers call stacks: a stack is recorded once, and calls refer to it by its number.
//!
//! Only addresses are recorded. The analyzer finds files, functions and lines.

use std::{collections::HashMap, ops::Range, sync::OnceLock};

use parking_lot::Mutex;
use urscope_schema::trace::records::{Hex, Module, Stack};

use crate::{
    knobs,
    raw::{fork_reset::ForkReset, interruptions, reserve, stack, symbols::modules},
};

/// The most different stacks in the trace of a process. A program that has more has generated code.
const LIMIT: usize = 1 << 16;

/// Receives the descriptions of stacks, before the first call that refers to one.
pub(crate) trait StackSink: Sync {
    /// A library that the stacks that follow lead through.
    fn module(&self, module: &Module);

    /// A stack and its number.
    fn stack(&self, stack: &Stack);
}

static SINK: OnceLock<&'static dyn StackSink> = OnceLock::new();

/// Sends descriptions there. Only the first call counts.
pub(crate) fn send_to(sink: &'static dyn StackSink) {
    let _ = SINK.set(sink);
}

static KNOWN: ForkReset<Mutex<Known>> = ForkReset::new(Mutex::default);

#[derive(Default)]
struct Known {
    numbers: HashMap<Box<[usize]>, u32>,
    modules: Vec<Range<u64>>,
}

/// The number of the current call stack; `None` where stacks are switched off or there are too many.
pub(crate) fn current() -> Option<u64> {
    if !knobs::read().stacks {
        return None;
    }
    match stack::number(|| own().clone(), register) {
        0 => None,
        number => Some(u64::from(number)),
    }
}

/// The addresses of this library.
fn own() -> &'static Range<usize> {
    static OWN: OnceLock<Range<usize>> = OnceLock::new();
    OWN.get_or_init(|| {
        let module = modules::describe(register as *const () as usize);
        module.map_or(0..0, |module| module.start.0 as usize..module.end.0 as usize)
    })
}

fn register(frames: &[usize]) -> u32 {
    if reserve::is_used() {
        return 0;
    }
    let _held_off = interruptions::hold_off();
    let mut known = KNOWN.get().lock();
    if let Some(number) = known.numbers.get(frames) {
        return *number;
    }
    if frames.is_empty() || known.numbers.len() >= LIMIT {
        return 0;
    }
    for frame in frames {
        let address = *frame as u64;
        if known.modules.iter().any(|module| module.contains(&address)) {
            continue;
        }
        if let Some(module) = modules::describe(*frame) {
            known.modules.push(module.start.0..module.end.0);
            if let Some(sink) = SINK.get() {
                sink.module(&module);
            }
        }
    }
    // The table may have grown large, and a program at its limit of memory must not end for a stack.
    if known.numbers.try_reserve(1).is_err() {
        return 0;
    }
    let number = known.numbers.len() as u32 + 1;
    known.numbers.insert(frames.into(), number);
    if let Some(sink) = SINK.get() {
        let frames = frames.iter().map(|frame| Hex(*frame as u64)).collect();
        sink.stack(&Stack { stack: u64::from(number), frames });
    }
    number
}

/// The addresses of a stack, innermost first.
pub(crate) fn frames(number: u64) -> Option<Vec<u64>> {
    let known = KNOWN.get().lock();
    let (frames, _) = known.numbers.iter().find(|(_, known)| u64::from(**known) == number)?;
    Some(frames.iter().map(|frame| *frame as u64).collect())
}

/// Starts over in a forked child, whose trace has no stacks yet.
pub(crate) fn after_fork_in_child() {
    KNOWN.reset(Mutex::default());
    stack::forget();
}
