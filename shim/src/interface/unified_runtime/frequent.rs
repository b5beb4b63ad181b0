//! The hooks of the functions of Unified Runtime of which programs make the most recorded calls: those that share memory. Each has a copy of
//! the path of a call, in which the compiler knows the function.

use std::ffi::c_void;
use std::ptr::null;

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
use urscope_schema::{handle::Kind, ur_functions};

use super::{UnifiedRuntime, structures};
use crate::backend::{self, adapter::ADAPTERS};
use crate::call::{self, Origin};
use crate::interface::{Interface as _, hooks};
use crate::raw::args::row::{Callee, Frame, KnownCall, REGISTERS};
use crate::raw::args::{Arg, inputs::Arguments};

const fn is_frequent(function: Function) -> bool {
    function.is_ipc() && matches!(function.effect().kind(), Kind::Usm)
}

macro_rules! frequent {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod known {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    path::$name(VIA, $($param),*)
                }
            )*
        }

        /// One for each function, not for each hook.
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "a row has the name and the parameters of C")]
        mod path {
            use super::*;

            $(
                #[inline(never)]
                pub(super) fn $name(via: usize, $($param: Arg<$role>),*) -> UrResult {
                    let Callee::Function(real) = backend::callee(Function::$name, via) else {
                        let words = [$(word($param)),*];
                        return by_words(via, Function::$name, &words);
                    };
                    // SAFETY: it is the adapter's function of this name, which has the row's signature.
                    let real = unsafe {
                        std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>(real)
                    };
                    let mut arguments = Arguments::none(Function::$name, &structures::Structures);
                    $(arguments.add(stringify!($param), $param);)*
                    let mut call = KnownCall::new(arguments, |to: &OutParams| real($($param.redirected(to)),*));
                    call::intercept_known(Origin::Adapter(via), &mut call, const { Function::$name.effect() })
                }
            )*
        }

        /// The hook of a function for adapter `via`.
        pub(super) fn hook(function: Function, via: usize) -> *mut c_void {
            let known = match function {
                $(Function::$name => {
                    const HOOKS: [Option<extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>; ADAPTERS] =
                        if is_frequent(Function::$name) {
                            frequent!(@hooks $name, 0 1 2 3 4 5 6 7)
                        } else {
                            [None; ADAPTERS]
                        };
                    HOOKS.get(via).copied().flatten().map(|hook| hook as *mut c_void)
                })*
                _ => None,
            };
            known.unwrap_or_else(|| hooks::hook(function, via))
        }
    };
    (@hooks $name:ident, $($via:literal)*) => {
        [$(Some(known::$name::<$via>)),*]
    };
}

ur_functions!(frequent);

/// An argument as C passes it.
const fn word<R: Copy>(argument: Arg<R>) -> u64 {
    let mut word = 0_u64;
    const { assert!(size_of::<Arg<R>>() <= size_of::<u64>()) };
    // SAFETY: it is as large, and any bytes of an argument are initialized.
    unsafe { (&raw mut word).cast::<Arg<R>>().write(argument) };
    word
}

/// Takes a call that a function of urscope carries out.
#[cold]
fn by_words(via: usize, function: Function, words: &[u64]) -> UrResult {
    let mut registers = [0; REGISTERS];
    registers.iter_mut().zip(words).for_each(|(register, word)| *register = *word);
    // SAFETY: the arguments of this function, which has so many at most.
    UnifiedRuntime.call(via, function, unsafe { Frame::new(registers.as_ptr(), null()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_frequent_function_are_in_registers() {
        let frequent: Vec<_> = Function::ALL.iter().filter(|function| is_frequent(**function)).collect();
        assert!(frequent.len() > 3 && frequent.iter().all(|function| function.parameters().len() <= REGISTERS));
    }
}
