//! The hooks: one for each function and each library that may have it, because a C function cannot know in whose place
//! it stands.
//!
//! A hook has the number of both. It stores the caller and the arguments, and calls [`dispatch`](super::dispatch).
//! Programs enqueue many commands, and none is recorded while the process shares nothing: then their hooks jump to the
//! library's function.

use std::{arch::naked_asm, ffi::c_void, ptr::null_mut};

#[allow(clippy::wildcard_imports, reason = "each interface has a macro for its rows")]
use urscope_schema::*;
use urscope_schema::{api::Function, hooked_functions};

use crate::raw::originals::{self, LIBRARIES, ORIGINALS};
use crate::sharing::commands;

/// The number of no library: the hook is that of an exported function that no library has.
pub(crate) const ABSENT: usize = LIBRARIES;

type Hook = unsafe extern "C-unwind" fn();

/// The number of a function of a library.
pub(crate) const fn number(via: usize, function: Function) -> u32 {
    (via as u32) << 16 | function as u32
}

/// The library and the function with a [`number`].
#[inline]
pub(crate) fn numbered(number: u32) -> Option<(usize, Function)> {
    Some(((number >> 16) as usize, *Function::ALL.get((number & 0xffff) as usize)?))
}

/// Passes the arguments on to [`dispatch`](super::dispatch). The number is in eax. A signal handler may walk the stack
/// at each instruction.
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        crate::store_caller!(),
        "push r9",
        ".cfi_adjust_cfa_offset 8",
        "push r8",
        ".cfi_adjust_cfa_offset 8",
        "push rcx",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov edi, eax",
        "lea rsi, [rsp + 8]",
        "lea rdx, [rsp + 64]",
        "call {dispatch}",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        dispatch = sym super::dispatch,
    )
}

/// # Safety
///
/// The arguments are those of the function with this number.
#[unsafe(naked)]
unsafe extern "C-unwind" fn recorded<const NUMBER: u32>() {
    naked_asm!("mov eax, {number}", "jmp {enter}", number = const NUMBER, enter = sym enter)
}

/// # Safety
///
/// As for [`recorded`].
#[unsafe(naked)]
unsafe extern "C-unwind" fn command<const NUMBER: u32>() {
    naked_asm!(
        "cmp byte ptr [rip + {shares}], 0",
        "jne 2f",
        "mov rax, qword ptr [rip + {originals} + {place}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "mov eax, {number}",
        "jmp {enter}",
        shares = sym commands::IS_SHARING,
        originals = sym ORIGINALS,
        place = const place(NUMBER),
        number = const NUMBER,
        enter = sym enter,
    )
}

/// The offset in [`ORIGINALS`] of the function with this number.
#[expect(clippy::indexing_slicing, reason = "a number that is none does not compile")]
pub(super) const fn place(number: u32) -> usize {
    originals::place((number >> 16) as usize, Function::ALL[(number & 0xffff) as usize])
}

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        hooks!(@libraries [0 1 2 3 4 5 6 7] [$($name)*]);
    };
    (@libraries [$($via:literal)*] $names:tt) => {
        const _: () = assert!([$($via),*].len() == LIBRARIES, "each has hooks");

        static HOOKS: [[Hook; Function::COUNT]; LIBRARIES + 1] =
            [$(hooks!(@library $via, $names),)* hooks!(@library ABSENT, $names)];
    };
    (@library $via:expr, [$($name:ident)*]) => {
        [$({
            const NUMBER: u32 = number($via, Function::$name);
            const IS_COMMAND: bool = Function::$name.is_command() || Function::$name.effect().is_passed_on();
            if IS_COMMAND && $via < LIBRARIES { command::<NUMBER> } else { recorded::<NUMBER> }
        },)*]
    };
}

hooked_functions!(hooks);

/// The hook of a function of library `via`, or of none ([`ABSENT`]).
pub(crate) fn hook(function: Function, via: usize) -> *mut c_void {
    HOOKS.get(via).and_then(|hooks| hooks.get(function as usize)).map_or(null_mut(), |hook| *hook as *mut c_void)
}
