//! The rows of the function table as data: where C passes each argument of a function, and how it is read; and the
//! calls of functions whose arguments are known in that form only.
//!
//! C passes numbers and pointers in six registers and then on the stack, structures of one or two words likewise, and
//! larger ones on the stack (System V ABI for x86-64, 3.2.3). No row has floating-point arguments.

#![expect(clippy::inline_always, reason = "the compiler knows the function of a call that has a path of its own")]

use std::arch::naked_asm;
use std::ffi::c_void;

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, ResultCode, role::*};
#[allow(clippy::wildcard_imports, reason = "each interface has a macro for its rows")]
use urscope_schema::*;

use super::inputs::Arguments;
use super::{Arg, reader::Reader};

/// The registers in which arguments are passed: rdi, rsi, rdx, rcx, r8, r9.
pub const REGISTERS: usize = 6;

/// The size of a word in bytes.
const WORD: usize = size_of::<u64>();

/// The most words of arguments on the stack.
const STACK_LIMIT: usize = 16;

/// The arguments of a call, as the caller has passed them.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    registers: *const u64,
    stack: *const u64,
}

impl Frame {
    /// The arguments in the words of the [`REGISTERS`], and behind the return address on the stack.
    ///
    /// # Safety
    ///
    /// Both can be read as long as the frame is used, and hold the arguments of a call of the function that it is used
    /// for.
    pub const unsafe fn new(registers: *const u64, stack: *const u64) -> Self {
        Self { registers, stack }
    }

    /// Calls a C function with these arguments.
    ///
    /// # Safety
    ///
    /// They are those of `function`, which `callee` implements.
    pub(crate) unsafe fn pass_on(self, function: Function, callee: *mut c_void) -> ResultCode {
        // SAFETY: the caller's promise.
        unsafe { invoke(callee, self.registers, self.stack, Row::for_function(function).stack) }
    }

    /// The address of the word at a [`Parameter::place`].
    #[inline]
    const fn address(self, place: u8) -> *const u64 {
        let place = place as usize;
        // SAFETY: the promise of `new`, as the place is from the row of the function.
        unsafe { if place < REGISTERS { self.registers.add(place) } else { self.stack.add(place - REGISTERS) } }
    }

    /// The argument of a parameter, which has this role.
    pub(crate) fn argument<R: Role>(self, row: &Row, index: usize) -> Option<Arg<R>> {
        let parameter = row.parameters.get(index)?;
        // SAFETY: as in `address`; any bytes are valid as a role.
        Some(Arg(unsafe { self.address(parameter.place).cast::<R>().read_unaligned() }))
    }
}

/// A parameter of a row.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name in the row.
    name: &'static str,
    /// Which parameter it is, from 0 on.
    pub(super) index: u8,
    /// The index of its first word: of the registers, or, from [`REGISTERS`] on, of those on the stack.
    place: u8,
    /// Its size in bytes, in C.
    pub(super) bytes: u8,
    /// Whether the shim looks at it.
    is_seen: bool,
    /// Adds it to the arguments.
    add: unsafe fn(*const u64, &'static str, &mut Arguments),
    /// Replaces it by the argument to pass on; `None` for one that is always passed on as it is.
    redirect: Option<unsafe fn(*mut u64, &OutParams)>,
}

impl Parameter {
    const fn new<R: Role>(name: &'static str) -> Self {
        Self {
            name,
            index: 0,
            place: 0,
            bytes: R::BYTES as u8,
            is_seen: R::IS_SEEN,
            add: add::<R>,
            redirect: if R::IS_REDIRECTED { Some(redirect::<R>) } else { None },
        }
    }

    /// Adds the argument with these words.
    ///
    /// # Safety
    ///
    /// As many words as it has are readable, and are the argument of a call.
    #[inline]
    pub(super) unsafe fn add(&self, words: *const u64, to: &mut Arguments) {
        // SAFETY: the caller's promise.
        unsafe { (self.add)(words, self.name, to) };
    }
}

/// # Safety
///
/// As for [`Parameter::add`].
unsafe fn add<R: Role>(words: *const u64, name: &'static str, to: &mut Arguments) {
    // SAFETY: the caller's promise; any bytes are valid as a role.
    to.add(name, Arg(unsafe { words.cast::<R>().read_unaligned() }));
}

/// # Safety
///
/// As many words as the role has can be read and written.
unsafe fn redirect<R: Role>(words: *mut u64, to: &OutParams) {
    // SAFETY: the caller's promise; any bytes are valid as a role.
    unsafe { words.cast::<R>().write_unaligned(words.cast::<R>().read_unaligned().redirected(to)) };
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// In the order of C.
    pub(super) parameters: &'static [Parameter],
    /// Those that the shim looks at.
    pub(super) seen: &'static [Parameter],
    /// How many words are on the stack.
    stack: usize,
}

impl Row {
    /// The row of a function.
    #[inline]
    pub fn for_function(function: Function) -> &'static Self {
        static NONE: Row = Row { parameters: &[], seen: &[], stack: 0 };
        ROWS.get(function as usize).unwrap_or(&NONE)
    }
}

/// Sets the places of parameters with these sizes in bytes; the second result is the number of words on the stack.
#[expect(clippy::indexing_slicing, reason = "it is called when it is compiled")]
const fn placed<const N: usize>(mut all: [Parameter; N], sizes: [usize; N]) -> ([Parameter; N], usize) {
    let mut at = 0;
    let mut registers = 0;
    let mut stack = 0;
    while at < N {
        let words = sizes[at].div_ceil(WORD);
        all[at].index = at as u8;
        if words <= 2 && registers + words <= REGISTERS {
            all[at].place = registers as u8;
            registers += words;
        } else {
            all[at].place = (REGISTERS + stack) as u8;
            stack += words;
        }
        at += 1;
    }
    assert!(stack <= STACK_LIMIT, "a copy has room for them");
    (all, stack)
}

/// The parameters that the shim looks at, and their number.
#[expect(clippy::indexing_slicing, reason = "it is called when it is compiled")]
const fn seen<const N: usize>(all: [Parameter; N]) -> ([Parameter; N], usize) {
    let mut seen = all;
    let mut count = 0;
    let mut at = 0;
    while at < N {
        if all[at].is_seen {
            seen[count] = all[at];
            count += 1;
        }
        at += 1;
    }
    (seen, count)
}

macro_rules! rows {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        static ROWS: [Row; Function::COUNT] = [$({
            const N: usize = <[&str]>::len(&[$(stringify!($param)),*]);
            const PLACED: ([Parameter; N], usize) =
                placed([$(Parameter::new::<$role>(stringify!($param))),*], [$(size_of::<$role>()),*]);
            const SEEN: ([Parameter; N], usize) = seen(PLACED.0);
            Row { parameters: &PLACED.0, seen: SEEN.0.split_at(SEEN.1).0, stack: PLACED.1 }
        }),*];
    };
}

hooked_functions!(rows);

/// What carries out a call.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// A C function with the signature of the row.
    Function(*mut c_void),
    /// A function of urscope, for a function of the adapter with this number.
    Own(fn(Function, usize, Frame) -> ResultCode, Function, usize),
}

impl Callee {
    /// # Safety
    ///
    /// The frame has the arguments of a call of this function, and `stack` words on the stack.
    unsafe fn call(self, frame: Frame, stack: usize) -> ResultCode {
        match self {
            // SAFETY: the caller's promise.
            Self::Function(function) => unsafe { invoke(function, frame.registers, frame.stack, stack) },
            Self::Own(own, function, via) => own(function, via, frame),
        }
    }
}

/// A call of a hooked function that can be made.
pub trait RealCall {
    /// The arguments in the form in which they are recorded.
    fn arguments(&self) -> &Arguments;

    /// The arguments, to add to them.
    fn arguments_mut(&mut self) -> &mut Arguments;

    /// Makes the call with the arguments as they are.
    fn make(&self) -> ResultCode;

    /// Makes the call so that the callee writes its answers `to` these addresses.
    fn make_redirected(&self, to: &OutParams) -> ResultCode;
}

/// A call of a function whose arguments are in a [`Frame`].
#[derive(Debug)]
pub struct Call {
    arguments: Arguments,
    frame: Frame,
    callee: Callee,
}

impl Call {
    /// A call with the arguments in a frame, whose structures `reader` reads.
    ///
    /// # Safety
    ///
    /// The frame has the arguments of a call of `function`, and `callee` implements that function.
    #[inline]
    pub unsafe fn new(function: Function, reader: &'static dyn Reader, frame: Frame, callee: Callee) -> Self {
        let mut arguments = Arguments::none(function, reader);
        for parameter in Row::for_function(function).seen {
            // SAFETY: the caller's promise.
            unsafe { parameter.add(frame.address(parameter.place), &mut arguments) };
        }
        Self { arguments, frame, callee }
    }

    /// The function.
    #[inline]
    pub fn function(&self) -> Function {
        self.arguments.function()
    }

    /// This call, made by another function with this signature.
    ///
    /// # Safety
    ///
    /// `callee` implements the function.
    #[must_use]
    pub unsafe fn with_callee(self, callee: Callee) -> Self {
        Self { callee, ..self }
    }
}

impl RealCall for Call {
    #[inline]
    fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    #[inline]
    fn arguments_mut(&mut self) -> &mut Arguments {
        &mut self.arguments
    }

    fn make(&self) -> ResultCode {
        // SAFETY: the promise of `new`.
        unsafe { self.callee.call(self.frame, Row::for_function(self.function()).stack) }
    }

    fn make_redirected(&self, to: &OutParams) -> ResultCode {
        let row = Row::for_function(self.function());
        let mut registers = [0; REGISTERS];
        let mut stack = [0; STACK_LIMIT];
        // SAFETY: the promise of `new`; a row has no more words on the stack.
        unsafe {
            self.frame.registers.copy_to_nonoverlapping(registers.as_mut_ptr(), REGISTERS);
            self.frame.stack.copy_to_nonoverlapping(stack.as_mut_ptr(), row.stack.min(STACK_LIMIT));
        }
        let frame = Frame { registers: registers.as_mut_ptr(), stack: stack.as_mut_ptr() };
        for parameter in row.seen {
            if let Some(redirect) = parameter.redirect {
                // SAFETY: the words of the copy that the parameter has.
                unsafe { redirect(frame.address(parameter.place).cast_mut(), to) };
            }
        }
        // SAFETY: as above.
        unsafe { self.callee.call(frame, row.stack) }
    }
}

/// An argument as C passes it; 0 for one that is larger than a word.
#[inline]
pub(crate) fn word<R: Role>(argument: Arg<R>) -> u64 {
    let mut word = 0_u64;
    if size_of::<R>() <= WORD {
        // SAFETY: it is no larger, and any bytes are valid as a number.
        unsafe { (&raw mut word).cast::<Arg<R>>().write_unaligned(argument) };
    }
    word
}

/// The words of arguments that fit into registers.
pub(crate) fn words(of: &[u64]) -> [u64; REGISTERS] {
    let mut words = [0; REGISTERS];
    words.iter_mut().zip(of).for_each(|(to, word)| *to = *word);
    words
}

/// A call of a function that the compiler knows: `call` makes it, with its answers to other addresses.
#[derive(Debug)]
pub struct KnownCall<F> {
    arguments: Arguments,
    call: F,
}

impl<F: Fn(&OutParams) -> ResultCode> KnownCall<F> {
    /// The call with these arguments.
    #[inline(always)]
    pub const fn new(arguments: Arguments, call: F) -> Self {
        Self { arguments, call }
    }
}

impl<F: Fn(&OutParams) -> ResultCode> RealCall for KnownCall<F> {
    #[inline(always)]
    fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    #[inline(always)]
    fn arguments_mut(&mut self) -> &mut Arguments {
        &mut self.arguments
    }

    #[inline(always)]
    fn make(&self) -> ResultCode {
        (self.call)(&OutParams::NONE)
    }

    #[inline(always)]
    fn make_redirected(&self, to: &OutParams) -> ResultCode {
        (self.call)(to)
    }
}

/// Calls a C function with the words of the registers and as many others as `count` says on the stack.
///
/// # Safety
///
/// They are the arguments of the function.
#[unsafe(naked)]
unsafe extern "C-unwind" fn invoke(
    function: *mut c_void,
    registers: *const u64,
    stack: *const u64,
    count: usize,
) -> ResultCode {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov r11, rdi",
        "mov r10, rsi",
        "shl rcx, 3",
        "sub rsp, rcx",
        "and rsp, -16",
        "test rcx, rcx",
        "jz 3f",
        "2:",
        "mov rax, qword ptr [rdx + rcx - 8]",
        "mov qword ptr [rsp + rcx - 8], rax",
        "sub rcx, 8",
        "jnz 2b",
        "3:",
        "mov rdi, qword ptr [r10]",
        "mov rsi, qword ptr [r10 + 8]",
        "mov rdx, qword ptr [r10 + 16]",
        "mov rcx, qword ptr [r10 + 24]",
        "mov r8, qword ptr [r10 + 32]",
        "mov r9, qword ptr [r10 + 40]",
        "xor eax, eax",
        "call r11",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use super::super::reader::NoReader;
    use super::*;

    #[test]
    fn arguments_are_passed_as_c_passes_them() {
        /// As `zeMemOpenIpcHandle`: of the five arguments, the third is a structure on the stack.
        extern "C-unwind" fn open(
            context: usize,
            device: usize,
            handle: IpcHandle,
            flags: u32,
            pointer: usize,
        ) -> ResultCode {
            assert_eq!((context, device, flags, pointer), (1, 2, 3, 4));
            ResultCode((handle == IpcHandle::of_word(7)).into())
        }
        let registers = [1, 2, 3, 4, 5, 6_u64];
        let stack = [7, 0, 0, 0, 0, 0, 0, 0_u64];
        // SAFETY: these are arguments of the function.
        let call = unsafe {
            let frame = Frame::new(registers.as_ptr(), stack.as_ptr());
            Call::new(Function::zeMemOpenIpcHandle, &NoReader, frame, Callee::Function(open as *mut c_void))
        };
        assert_eq!(call.make(), ResultCode(1));
        let values = call.arguments().values();
        assert_eq!((values.context, values.device, values.flags), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn what_does_not_fit_into_registers_is_on_the_stack() {
        let places = |function| {
            Row::for_function(function).parameters.iter().map(|parameter| parameter.place).collect::<Vec<_>>()
        };
        let launch = Row::for_function(Function::cuLaunchKernel);
        assert_eq!(places(Function::cuLaunchKernel), (0..11).collect::<Vec<_>>());
        assert_eq!((launch.stack, Row::for_function(Function::zeMemOpenIpcHandle).stack), (5, 8));
        assert_eq!(places(Function::zeMemOpenIpcHandle), [0, 1, 6, 2, 3]);
        let of = |sizes: [usize; 4]| {
            let (all, stack) = placed([Parameter::new::<Size>(""); 4], sizes);
            (all.map(|parameter| parameter.place), stack)
        };
        assert_eq!(of([12, 12, 12, 4]), ([0, 2, 4, 6], 1), "structures of two words");
        assert_eq!(of([64, 12, 12, 16]), ([6, 0, 2, 4], 8));
    }
}
