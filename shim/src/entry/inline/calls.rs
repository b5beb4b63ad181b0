//! The hooks that an adapter's changed code jumps to: one for each row of Unified Runtime and each adapter.
//!
//! An adapter's calls of its own functions come here, too. They are part of a call that is recorded already, and are
//! passed on. A compiler may let the caller keep values in registers that the callee does not use, against the
//! calling convention (`-fipa-ra` of GCC, part of `-O2`). So all registers are preserved, except the upper halves of
//! vector registers (AVX). Must never hold a lock or allocate across the real call.

use std::{arch::naked_asm, ffi::c_void, sync::atomic::Ordering};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
use urscope_schema::ur_functions;

use super::OWN_CODE;
use crate::raw::{args::Arg, call_stacks::caller, threads::nesting::Outermost};
use crate::{backend::adapter, entry::hooks};

/// Instructions of a naked function: store the return address, and call `$to`, which must have the signature of the
/// function and at most 14 parameters. All registers but `rax` are preserved. The directives are for exceptions and
/// stack walkers.
macro_rules! keeping_registers {
    ($to:path) => {
        naked_asm!(
            ".cfi_startproc",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push rcx",
            "push rdx",
            "push rsi",
            "push rdi",
            "push r8",
            "push r9",
            "push r10",
            "push r11",
            "sub rsp, 256",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movups [rsp + 16 * \\number], xmm\\number",
            ".endr",
            // The parameters on the stack, or what else is there.
            ".irp number, 9, 8, 7, 6, 5, 4, 3, 2",
            "push qword ptr [rbp + 8 * \\number]",
            ".endr",
            "mov r11, qword ptr [rip + urscope_variables@GOTTPOFF]",
            "mov r10, qword ptr [rbp + 8]",
            "mov qword ptr fs:[r11], r10",
            "call {to}",
            "add rsp, 64",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movups xmm\\number, [rsp + 16 * \\number]",
            ".endr",
            "add rsp, 256",
            "pop r11",
            "pop r10",
            "pop r9",
            "pop r8",
            "pop rdi",
            "pop rsi",
            "pop rdx",
            "pop rcx",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            to = sym $to,
        )
    };
}

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod entry {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    keeping_registers!(passed::$name::<VIA>)
                }
            )*
        }

        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod passed {
            use super::*;

            $(
                const _: () = assert!(Function::$name.parameters().len() <= 14, "so many are passed on");

                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    let outermost = if is_adapters_own(VIA) { None } else { Outermost::begin() };
                    if outermost.is_none() {
                        return adapter::$name(VIA)($($param),*);
                    }
                    hooks::checked::$name::<VIA>($($param),*)
                }
            )*
        }

        /// The hook of `function` for adapter `via`.
        pub(super) fn hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => adapter::for_adapter!(entry::$name, via),)*
                _ => None,
            }
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
