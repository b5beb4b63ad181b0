//! The hooks of the functions of Unified Runtime of which programs make the most recorded calls: those that share
//! memory. Each has a copy of the path of a call.

use std::ffi::c_void;
use std::ptr::null;

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, ResultCode, role::*};
use urscope_schema::{handle::Kind, ur_functions};

use super::{UnifiedRuntime, structures};
use crate::backend;
use crate::call::{self, Origin};
use crate::interface::{Interface as _, hooks, known::known_hooks};
use crate::raw::args::row::{self, Callee, Frame, KnownCall, REGISTERS};
use crate::raw::args::{Arg, inputs::Arguments};
use crate::raw::originals::LIBRARIES;

const fn is_frequent(function: Function) -> bool {
    function.is_ipc() && matches!(function.effect().kind(), Kind::Usm)
}

macro_rules! jump {
    ($to:path, $number:expr) => {
        std::arch::naked_asm!("jmp {to}", to = sym $to)
    };
}

macro_rules! frequent {
    ($($rows:tt)*) => {
        known_hooks! { [is_frequent, &structures::Structures, take, jump] $($rows)* }
    };
}

ur_functions!(frequent);

/// Takes the call of a hook.
#[expect(clippy::inline_always, reason = "the function is a constant of the caller")]
#[inline(always)]
fn take(
    via: usize,
    function: Function,
    arguments: Arguments,
    call: impl Fn(*mut c_void, &OutParams) -> ResultCode,
    words: impl FnOnce() -> [u64; REGISTERS],
) -> ResultCode {
    let Callee::Function(real) = backend::callee(function, via) else {
        let words = words();
        // SAFETY: the arguments of this function, which has so many at most.
        return UnifiedRuntime.call(via, function, unsafe { Frame::new(words.as_ptr(), null()) });
    };
    let mut call = KnownCall::new(arguments, |to: &OutParams| call(real, to));
    call::intercept_known(Origin::Adapter(via), &mut call, function.effect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_frequent_function_are_in_registers() {
        let frequent: Vec<_> = Function::ALL.iter().filter(|function| is_frequent(**function)).collect();
        assert!(frequent.iter().all(|function| function.parameters().len() <= REGISTERS));
        assert!(frequent.iter().filter(|function| known_hook(***function, 0).is_some()).count() > 3);
    }
}
