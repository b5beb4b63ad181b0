//! The hooks that an adapter's changed code jumps to: one for each row of Unified Runtime and each adapter.
//!
//! An adapter's calls of its own functions come here, too. They are part of a call that is recorded already, and are
//! passed on. A compiler may let the caller keep values in registers that the callee does not use, against the
//! calling convention (`-fipa-ra` of GCC, part of `-O2`). So all registers are preserved, except the upper halves of
//! vector registers (AVX). Must never hold a lock or allocate across the real call.

use std::{arch::naked_asm, ffi::c_void, sync::atomic::Ordering};

use urscope_schema::api::{Function, ResultCode};
use urscope_schema::ur_functions;

use super::super::UnifiedRuntime;
use super::OWN_CODE;
use crate::backend::adapter;
use crate::interface::{Interface as _, hooks};
use crate::raw::args::row::{Call, Frame, RealCall as _};
use crate::raw::{args::reader::NoReader, call_stacks::caller, threads::nesting::Outermost};

/// Stores the return address and the arguments, and calls [`take`] with the number in eax. All registers but `rax` are
/// preserved. The directives are for exceptions and stack walkers.
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push r10",
        "push r11",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "sub rsp, 256",
        ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "movups [rsp + 16 * \\number], xmm\\number",
        ".endr",
        "mov r11, qword ptr [rip + urscope_variables@GOTTPOFF]",
        "mov r10, qword ptr [rbp + 8]",
        "mov qword ptr fs:[r11], r10",
        "mov edi, eax",
        "lea rsi, [rsp + 256]",
        "lea rdx, [rbp + 16]",
        "call {take}",
        ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "movups xmm\\number, [rsp + 16 * \\number]",
        ".endr",
        "add rsp, 256",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop r8",
        "pop r9",
        "pop r11",
        "pop r10",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        take = sym take,
    )
}

#[unsafe(naked)]
unsafe extern "C-unwind" fn hook_of<const NUMBER: u32>() {
    naked_asm!("mov eax, {number}", "jmp {enter}", number = const NUMBER, enter = sym enter)
}

/// Takes the call of a hook.
unsafe extern "C-unwind" fn take(number: u32, registers: *const u64, stack: *const u64) -> ResultCode {
    let Some((via, function)) = hooks::numbered(number) else { return ResultCode::UNKNOWN };
    // SAFETY: the hook of this function was called, and has stored the registers; the other words are behind its return
    // address.
    let frame = unsafe { Frame::new(registers, stack) };
    let outermost = if is_adapters_own(via) { None } else { Outermost::begin() };
    if outermost.is_none() {
        // SAFETY: as above; the adapter has this function.
        return unsafe { Call::new(function, &NoReader, frame, adapter::callee(via, function)) }.make();
    }
    UnifiedRuntime.call(via, function, frame)
}

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        /// The hook of `function` for adapter `via`.
        pub(super) fn hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => hooks!(@via via, $name, 0 1 2 3 4 5 6 7),)*
                _ => None,
            }
        }
    };
    (@via $via:ident, $name:ident, $($number:literal)*) => {
        match $via {
            $($number => Some(hook_of::<{ hooks::number($number, Function::$name) }> as *mut c_void),)*
            _ => None,
        }
    };
}

/// Whether the adapter, as a separate library, has made the current call.
fn is_adapters_own(via: usize) -> bool {
    let Some((begin, end)) = OWN_CODE.get(via) else { return false };
    let begin = begin.load(Ordering::Acquire);
    begin != 0 && (begin..end.load(Ordering::Acquire)).contains(&caller::address())
}

ur_functions!(hooks);
