//! The frames of Python in a call stack: function, file and line, read from the memory of CPython.
//!
//! The interpreter is not asked: no function of it is called and its lock is not taken, because a call may come at
//! any time, also from a thread that has released the lock. What a thread finds of itself does not change meanwhile,
//! because it is in a call. The first read of a place goes through the kernel ([`memory`]) and checks the type of
//! every object. A build that is not as expected gives no frames.

use std::{ffi::CStr, ops::Range, sync::OnceLock};

use urscope_schema::trace::records::PythonFrame;

use self::layout::{Layout, Version};
use super::symbols::modules;

mod layout;
mod lines;
mod memory;
mod stack;
mod text;

pub use stack::PythonStack;

/// What was found of CPython in this process.
struct Interpreter {
    layout: Layout,
    runtime: usize,
    /// The function that runs Python code; all code of the interpreter where it is many functions, which no symbol
    /// tells from others.
    runs: Range<usize>,
    /// Whether it is one function, so that each of its calls can be told from the others.
    is_one_function: bool,
    types: Types,
}

/// The addresses of the types of objects.
struct Types {
    code: usize,
    text: usize,
    bytes: usize,
}

/// What a library is to this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No interpreter.
    Other,
    /// An interpreter whose frames can be read.
    Known,
    /// An interpreter of a version or a build whose frames cannot be read, with its version as Python writes it in
    /// `Py_Version`, or 0.
    Unknown(usize),
    /// An interpreter in a process that the kernel does not let read itself.
    Refused,
}

/// The function that runs all instructions of Python has at least so many bytes of code: 40,000 and more in builds
/// that were seen.
const LOOP_SIZE: usize = 16 << 10;

static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();

/// Looks whether the library at `address` is CPython. Reads its file if it is.
pub fn look_at(address: usize) -> Kind {
    let symbol = |name: &CStr| modules::symbol_of(address, name);
    let (Some(runs), Some(runtime)) = (symbol(c"_PyEval_EvalFrameDefault"), symbol(c"_PyRuntime")) else {
        return Kind::Other;
    };
    // 3.10 has no variable for its version; the second function is new in it.
    let version = match symbol(c"Py_Version") {
        Some(variable) => memory::word(variable),
        None => Some(if symbol(c"PyIter_Send").is_some() { 0x030a_0000 } else { 0 }),
    };
    let head = memory::bytes(runtime, layout::HEAD, layout::HEAD);
    let Some((version, head)) = version.zip(head) else { return Kind::Refused };
    let unknown = Kind::Unknown(version);
    let Some(layout) = layout::of((version >> 16) as Version, &head) else { return unknown };
    let types = symbol(c"PyCode_Type").zip(symbol(c"PyUnicode_Type")).zip(symbol(c"PyBytes_Type"));
    let Some(((code, text), bytes)) = types else { return unknown };
    let size = modules::size_of_function(runs).unwrap_or(1);
    // From 3.14 on, each instruction may be a function of its own (`Py_TAIL_CALL_INTERP`), and this one only calls the
    // first.
    let is_one_function = version < 0x030e_0000 || size >= LOOP_SIZE;
    let all = if is_one_function { None } else { modules::code_around(runs) };
    let runs = all.unwrap_or(runs..runs + size);
    // Only the first one counts: the stack of a second interpreter in one process has no frames of Python.
    INTERPRETER.get_or_init(|| Interpreter {
        layout,
        runtime,
        runs,
        is_one_function,
        types: Types { code, text, bytes },
    });
    Kind::Known
}

/// Where this thread is in Python; `None` if none of the return addresses is in the interpreter, or nothing can be
/// read.
pub fn current_stack(addresses: &[usize]) -> Option<Box<PythonStack>> {
    let interpreter = INTERPRETER.get()?;
    if memory::is_refused() || !addresses.iter().any(|address| interpreter.runs(*address)) {
        return None;
    }
    PythonStack::of_this_thread(interpreter).map(Box::new)
}

/// The frames of a place, innermost first. `addresses` are the return addresses that it was found with.
pub fn frames(stack: &PythonStack, addresses: &[usize]) -> Vec<PythonFrame> {
    INTERPRETER.get().map_or_else(Vec::new, |interpreter| stack.frames(interpreter, addresses))
}

impl Interpreter {
    /// Whether a return address is in what runs Python code.
    fn runs(&self, address: usize) -> bool {
        self.runs.contains(&address.wrapping_sub(1))
    }
}
