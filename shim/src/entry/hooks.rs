//! The hooks of an adapter's functions: one for each row of Unified Runtime and each adapter, because a C function cannot
//! know in whose table it is.
//!
//! They pass quickly what is not recorded. Programs enqueue many commands, and none is recorded while the process shares
//! nothing: then a hook jumps to the adapter's function, with all arguments in place.

use std::{arch::naked_asm, ffi::c_void};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
use urscope_schema::ur_functions;

use crate::backend::{self, adapter};
use crate::call::{self, Origin};
use crate::raw::args::Arg;
use crate::raw::args::row::{self, Row};
use crate::{commands, event_filter};

/// Passes a call on to adapter `via`, recorded unless nothing can be recorded of it. There is one for each row, not for each hook.
#[inline(never)]
fn pass<R: Row>(via: usize, row: R, real: R::Real) -> UrResult {
    if event_filter::passes_any(R::FUNCTION) && row.arguments().nulls().is_empty() {
        let result = row.call(real);
        commands::note_unrecorded(R::FUNCTION, row.arguments().inputs(), result);
        return result;
    }
    call::intercept(Origin::Adapter(via), row, real)
}

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        pub(super) mod checked {
            use super::*;

            $(
                pub(in super::super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    pass(VIA, row::$name { $($param),* }, backend::$name::<VIA>())
                }
            )*
        }

        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod command {
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
                        recorded = sym checked::$name::<VIA>,
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
                    adapter::for_adapter!(command::$name, via)
                } else {
                    adapter::for_adapter!(checked::$name, via)
                },)*
                _ => None,
            }
        }

        /// A missing argument is a violation, which is always recorded. The hooks of commands check no arguments.
        #[test]
        fn no_argument_of_a_command_must_be_there() {
            $(
                // SAFETY: a role is a number, which is not followed here.
                let nulls = *unsafe { std::mem::zeroed::<row::$name>() }.arguments().nulls();
                assert!(!Function::$name.is_command() || nulls.is_empty(), concat!(stringify!($name), ": {:?}"), nulls);
            )*
        }
    };
}

ur_functions!(hooks);
