//! The frames of Python in a call stack: function, file and line, read from the memory of CPython.
//!
//! No function of the interpreter is called and its lock is not taken, because a thread may make a call without the
//! lock. The thread's own frames do not change during the call. The first read of a stack goes through the kernel
//! ([`memory`]) and checks the type of every object. An unexpected build gives no frames.

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

/// The CPython of this process.
struct Interpreter {
    layout: Layout,
    runtime: usize,
    /// The addresses of the function that runs Python code, or of all code of the interpreter if that is many
    /// functions.
    runs: Range<usize>,
    /// Whether it is one function, so that its calls can be distinguished.
    is_one_function: bool,
    types: Types,
}

/// The addresses of the types of objects.
struct Types {
    code: usize,
    text: usize,
    bytes: usize,
}

/// The result of [`look_at`] for a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No interpreter.
    Other,
    /// An interpreter whose frames can be read.
    Known,
    /// An interpreter whose frames cannot be read, with its `Py_Version`, or 0.
    Unknown(usize),
    /// An interpreter in a process that cannot read its memory through the kernel.
    Refused,
}

/// The least size of the function that runs all instructions of Python; known builds have 40,000 bytes and more.
const LOOP_SIZE: usize = 16 << 10;

static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();

/// Checks whether the library at `address` is CPython, and reads its file then.
pub fn look_at(address: usize) -> Kind {
    let symbol = |name: &CStr| modules::symbol_of(address, name);
    let (Some(runs), Some(runtime)) = (symbol(c"_PyEval_EvalFrameDefault"), symbol(c"_PyRuntime")) else {
        return Kind::Other;
    };
    // 3.10 has no variable for its version, but the second function, which 3.9 lacks.
    let version = match symbol(c"Py_Version") {
        Some(variable) => memory::word(variable),
        None => Some(if symbol(c"PyIter_Send").is_some() { 0x030a_0000 } else { 0 }),
    };
    let head = memory::bytes(runtime, layout::HEAD, layout::HEAD);
    let Some((version, head)) = version.zip(head) else { return Kind::Refused };
    let unknown = Kind::Unknown(version);
    let Some(layout) = layout::for_version((version >> 16) as Version, &head) else { return unknown };
    let types = symbol(c"PyCode_Type").zip(symbol(c"PyUnicode_Type")).zip(symbol(c"PyBytes_Type"));
    let Some(((code, text), bytes)) = types else { return unknown };
    let size = modules::size_of_function(runs).unwrap_or(1);
    // From 3.14 on, each instruction may be a function (`Py_TAIL_CALL_INTERP`); this one only calls the first.
    let is_one_function = version < 0x030e_0000 || size >= LOOP_SIZE;
    let all = if is_one_function { None } else { modules::code_around(runs) };
    let runs = all.unwrap_or(runs..runs + size);
    // Only for the first interpreter in a process; another one gives no frames.
    INTERPRETER.get_or_init(|| Interpreter {
        layout,
        runtime,
        runs,
        is_one_function,
        types: Types { code, text, bytes },
    });
    Kind::Known
}

/// The Python stack of this thread; `None` if no return address is in the interpreter, or it cannot be read. A stack
/// that `is_cut` before its end may have the interpreter's addresses behind it.
pub fn current_stack(addresses: &[usize], is_cut: bool) -> Option<Box<PythonStack>> {
    let interpreter = INTERPRETER.get()?;
    let may_run = is_cut || addresses.iter().any(|address| interpreter.runs(*address));
    if memory::is_refused() || !may_run {
        return None;
    }
    PythonStack::of_this_thread(interpreter).map(Box::new)
}

/// The frames of a stack, innermost first. `addresses` are its return addresses.
pub fn frames(stack: &PythonStack, addresses: &[usize]) -> Vec<PythonFrame> {
    INTERPRETER.get().map_or_else(Vec::new, |interpreter| stack.frames(interpreter, addresses))
}

impl Interpreter {
    /// Whether a return address is in the code that runs Python.
    fn runs(&self, address: usize) -> bool {
        self.runs.contains(&address.wrapping_sub(1))
    }
}
