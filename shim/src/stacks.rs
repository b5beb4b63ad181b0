//! Numbers call stacks: a stack is recorded once, and calls refer to it by its number.
//!
//! Only addresses are recorded. The analyzer finds files, functions and lines. The frames of Python have no addresses,
//! so they are recorded with their names.

use std::{ops::Range, sync::OnceLock};

use urscope_schema::trace::records::{Hex, Module, PythonFrame, Stack};

use crate::knobs::Hot;
use crate::raw::call_stacks::stack::{self, Registered};
use crate::raw::call_stacks::{caller, unwound_callers};
use crate::raw::memory::{hash_map::HashMap, reserve};
use crate::raw::{
    processes::fork_reset::ForkReset, python, signals::interruptions, symbols::modules, threads::mutex::Mutex,
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
    numbers: HashMap<Frames, u32>,
    modules: Vec<Range<u64>>,
    /// It has been said that the frames of Python are missing.
    is_python_missing: bool,
}

/// What makes a stack another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frames {
    /// The addresses that its calls return to, innermost first.
    pub(crate) addresses: Vec<usize>,
    /// The frames of Python, innermost first.
    pub(crate) python: Vec<PythonFrame>,
}

/// The number of the current call stack; `None` where stacks are switched off or there are too many.
#[inline]
pub(crate) fn current(hot: Hot) -> Option<u64> {
    if !hot.has_stacks() {
        return None;
    }
    match stack::number(own, register) {
        0 => None,
        number => Some(u64::from(number)),
    }
}

/// The first address that the call which has just come in through [`note_caller`](crate::note_caller) leads back to and
/// for which `wanted` holds, always the same for an address. It takes the time of unwinding when the call comes from
/// there for the first time.
pub(crate) fn first_caller(wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let from = caller::entry();
    if let Some(found) = unwound_callers::find() {
        return Some(found);
    }
    // One more than is kept, so that a longer way is known as one.
    let mut frames = [(0, 0); unwound_callers::PATH_LIMIT + 2];
    let (_, found) = stack::first(&own(), wanted, from, &mut frames)?;
    unwound_callers::insert(from, &frames);
    Some(found)
}

/// The addresses of this library, and of what calls it to show it calls of others. They are no part of a call.
fn own() -> [Range<usize>; 2] {
    static OWN: OnceLock<Range<usize>> = OnceLock::new();
    let ours = OWN.get_or_init(|| modules::addresses_around(register as *const () as usize));
    [ours.clone(), FRAMEWORK.get().cloned().unwrap_or_default()]
}

static FRAMEWORK: OnceLock<Range<usize>> = OnceLock::new();

/// Leaves out the frames of the library with the code at `address`, which shows calls of others. Only the first one
/// counts.
pub(crate) fn leave_out(address: usize) {
    let _ = FRAMEWORK.set(modules::addresses_around(address));
}

fn register(addresses: &[usize]) -> Registered {
    if reserve::is_used() || addresses.is_empty() {
        return Registered { number: 0, python: None };
    }
    let _held_off = interruptions::hold_off();
    let mut known = KNOWN.get().lock();
    if known.numbers.len() < LIMIT {
        known.add_modules(addresses);
    }
    let place = python::current_stack(addresses, addresses.len() == stack::DEPTH);
    let python = place.as_ref().map_or_else(Vec::new, |place| python::frames(place, addresses));
    let number = known.number(Frames { addresses: addresses.into(), python });
    Registered { number, python: place }
}

impl Known {
    /// Describes the libraries that are new in a stack.
    fn add_modules(&mut self, addresses: &[usize]) {
        for address in addresses {
            if self.modules.iter().any(|module| module.contains(&(*address as u64))) {
                continue;
            }
            let Some(module) = modules::describe(*address) else { continue };
            self.modules.push(module.start.0..module.end.0);
            if let Some(sink) = SINK.get() {
                sink.module(&module);
            }
            if let Some(missing) = why_missing(*address, &module)
                && !std::mem::replace(&mut self.is_python_missing, true)
            {
                tracing::info!("call stacks have no frames of Python: {missing}");
            }
        }
    }

    fn number(&mut self, frames: Frames) -> u32 {
        if let Some(number) = self.numbers.get(&frames) {
            return *number;
        }
        if self.numbers.len() >= LIMIT {
            return 0;
        }
        // The table may have grown large, and a program at its limit of memory must not end for a stack.
        if self.numbers.try_reserve(1).is_err() {
            return 0;
        }
        let number = self.numbers.len() as u32 + 1;
        if let Some(sink) = SINK.get() {
            let addresses = frames.addresses.iter().map(|address| Hex(*address as u64)).collect();
            sink.stack(&Stack { stack: u64::from(number), frames: addresses, python: frames.python.clone() });
        }
        self.numbers.insert(frames, number);
        number
    }
}

/// Why stacks have no frames of Python, if the library at `address` is an interpreter whose frames cannot be read.
fn why_missing(address: usize, module: &Module) -> Option<String> {
    match python::look_at(address) {
        python::Kind::Other | python::Kind::Known => None,
        python::Kind::Refused => Some("the kernel refuses process_vm_readv(2), with which they are read".into()),
        python::Kind::Unknown(version) => {
            let [.., major, minor] = (version >> 16).to_be_bytes();
            let name = if version == 0 { "an older Python".into() } else { format!("Python {major}.{minor}") };
            Some(format!("{} is {name}, in a version or a build that is not known; 3.10 to 3.14 are", module.path))
        }
    }
}

/// The frames of a stack.
pub(crate) fn frames(number: u64) -> Option<Frames> {
    let known = KNOWN.get().lock();
    let (frames, _) = known.numbers.iter().find(|(_, known)| u64::from(**known) == number)?;
    Some(frames.clone())
}

/// Starts over in a forked child, whose trace has no stacks yet.
pub(crate) fn after_fork_in_child() {
    KNOWN.reset(Mutex::default());
    stack::forget();
}
