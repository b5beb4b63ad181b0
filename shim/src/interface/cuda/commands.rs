//! The hooks of the driver's commands: programs make many of them, and most are about no shared memory.

use std::ffi::c_void;

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, ResultCode, role::*};
use urscope_schema::cu_functions;

use super::{structures, uninitialized};
use crate::interface::{driver, hooks, known::known_hooks};
use crate::raw::args::row::{self, KnownCall, REGISTERS};
use crate::raw::args::{Arg, inputs::Arguments};
use crate::raw::originals::{self, LIBRARIES};
use crate::sharing::commands;

const fn is_frequent(function: Function) -> bool {
    function.is_command()
}

/// The instructions of a hook: it jumps to the driver's function while the process shares nothing, and stores its
/// caller otherwise.
macro_rules! begin {
    ($to:path, $number:expr) => {
        std::arch::naked_asm!(
            "cmp byte ptr [rip + {shares}], 0",
            "jne 2f",
            "jmp qword ptr [rip + {originals} + {place}]",
            "2:",
            crate::store_caller!(),
            "jmp {to}",
            shares = sym commands::IS_SHARING,
            originals = sym originals::ORIGINALS,
            place = const hooks::place($number),
            to = sym $to,
        )
    };
}

macro_rules! frequent {
    ($($rows:tt)*) => {
        known_hooks! { [is_frequent, &structures::Structures, take, begin] $($rows)* }
    };
}

cu_functions!(frequent);

/// Takes the call of a hook.
#[expect(clippy::inline_always, reason = "the function is a constant of the caller")]
#[inline(always)]
fn take(
    via: usize,
    function: Function,
    arguments: Arguments,
    call: impl Fn(*mut c_void, &OutParams) -> ResultCode,
    _: impl FnOnce() -> [u64; REGISTERS],
) -> ResultCode {
    let original = originals::original(via, function);
    if original.is_null() {
        return uninitialized();
    }
    let mut call = KnownCall::new(arguments, |to: &OutParams| call(original, to));
    driver::pass_known(function.effect(), &mut call, true, || super::origin(via, function))
}
