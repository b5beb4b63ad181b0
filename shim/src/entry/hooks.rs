//! The hooks of an adapter's commands. Programs enqueue many of them, and none is recorded while the process shares
//! nothing: then a hook jumps to the adapter's function, with all arguments in place.

use std::{arch::naked_asm, ffi::c_void};

#[cfg(test)]
use urscope_schema::api::{demand::Nulls, role::*};
use urscope_schema::{api::Function, ur_functions};

#[cfg(test)]
use crate::raw::args::Arg;
use crate::{
    backend::adapter,
    call::{self, hook as recorded},
    commands,
};

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod passed {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    naked_asm!(
                        "cmp byte ptr [rip + {shares}], 0",
                        "jne {recorded}",
                        "mov rax, qword ptr [rip + {originals} + {place}]",
                        "test rax, rax",
                        "jz {recorded}",
                        "jmp rax",
                        shares = sym commands::IS_SHARING,
                        recorded = sym call::hook::$name::<VIA>,
                        originals = sym adapter::ORIGINALS,
                        place = const adapter::place(VIA, Function::$name),
                    )
                }
            )*
        }

        /// The hook of `function` for adapter `via`, which is below [`ADAPTERS`](crate::backend::adapter::ADAPTERS).
        pub(super) fn hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => if Function::$name.is_command() {
                    adapter::for_adapter!(passed::$name, via)
                } else {
                    adapter::for_adapter!(recorded::$name, via)
                },)*
                _ => None,
            }
        }

        /// A missing argument is a violation, which is always recorded. The hooks of commands check no arguments.
        #[test]
        fn no_argument_of_a_command_must_be_there() {
            $(
                let mut nulls = Nulls::default();
                // SAFETY: a role is a number, which is not followed here.
                $(nulls.note(Function::$name, stringify!($param), unsafe { std::mem::zeroed::<Arg<$role>>() }.null());)*
                assert!(!Function::$name.is_command() || nulls.is_empty(), concat!(stringify!($name), ": {:?}"), nulls);
            )*
        }
    };
}

ur_functions!(hooks);
