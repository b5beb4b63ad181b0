//! The numbers of call stacks: a stack is written into the trace once, and calls name it.
//!
//! Addresses only: which file, function and line they are is found out by the judge, from the files.

use std::{collections::HashMap, ops::Range, sync::OnceLock};

use parking_lot::Mutex;
use urscope_schema::trace::records::{Hex, Module, Stack};

use crate::{
    knobs,
    raw::{fork_reset::ForkReset, stack, symbols::modules},
};

/// How many different stacks a process can have in its trace. A program that has more makes them up as it goes.
const LIMIT: usize = 1 << 16;

/// Where stacks are described, before the first call that names one.
pub(crate) trait StackSink: Sync {
    /// A library that addresses of the stacks that follow lie in.
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

/// The number of the current call stack, if it has one.
pub(crate) fn current() -> Option<u64> {
    if !knobs::read().stacks {
        return None;
    }
    match stack::number(own(), register) {
        0 => None,
        number => Some(u64::from(number)),
    }
}

/// Where this library lies.
fn own() -> &'static Range<usize> {
    static OWN: OnceLock<Range<usize>> = OnceLock::new();
    OWN.get_or_init(|| {
        let module = modules::describe(register as *const () as usize);
        module.map_or(0..0, |module| module.start.0 as usize..module.end.0 as usize)
    })
}

fn register(frames: &[usize]) -> u32 {
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

/// Begins anew: the child's trace has no stacks yet.
pub(crate) fn after_fork_in_child() {
    KNOWN.reset(Mutex::default());
    stack::forget();
}
