//! The hooks of the CUDA driver's functions: one for each row and each library.

use std::{arch::naked_asm, ffi::c_void, mem::offset_of};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Effect, Function, UrResult, role::*};
use urscope_schema::cu_functions;
use urscope_schema::handle::{Kind, UsmType};

use super::super::driver;
use super::{LIBRARY_STATES, Library, current_context, for_library, real, report_once};
use crate::call::Origin;
use crate::raw::args::Arg;
use crate::raw::args::row::{self, Row};
use crate::{commands, note_caller};

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
                    note_caller!(passed::$name::<VIA>)
                }
            )*
        }

        /// The hooks of commands, which jump to the library's function while the process shares nothing: programs enqueue
        /// many commands.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod command {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name, and the library's function is stored.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    naked_asm!(
                        "cmp byte ptr [rip + {shares}], 0",
                        "jne {entry}",
                        "jmp qword ptr [rip + {known} + {place}]",
                        shares = sym commands::IS_SHARING,
                        entry = sym entry::$name::<VIA>,
                        known = sym LIBRARY_STATES,
                        place = const place(VIA, Function::$name),
                    )
                }
            )*
        }

        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod passed {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    pass(VIA, row::$name { $($param),* })
                }
            )*
        }

        /// The hook of `function` for the library with this number.
        pub(super) fn hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => Some(if Function::$name.is_command() {
                    for_library!(via, command::$name)
                } else if is_wait(Function::$name) {
                    for_library!(via, passed::$name)
                } else {
                    for_library!(via, entry::$name)
                }),)*
                _ => None,
            }
        }
    };
}

/// Whether calls are never recorded, so that the caller need not be known.
const fn is_wait(function: Function) -> bool {
    matches!(function.effect(), Effect::Waits(Kind::Queue))
}

/// Whether a call makes something that belongs to the current context. Memory of a pool and physical memory belong to a device.
fn makes_in_context(function: Function) -> bool {
    match function.effect() {
        Effect::Allocates(_) => function.usm_type() != Some(UsmType::Pool),
        Effect::Opens(Kind::Usm | Kind::Event) | Effect::Creates(Kind::Event) => true,
        _ => false,
    }
}

/// The offset of a library's function in [`LIBRARY_STATES`].
const fn place(via: usize, function: Function) -> usize {
    via * size_of::<Library>() + offset_of!(Library, functions) + function as usize * size_of::<usize>()
}

/// Passes a call on to the library with this number.
#[expect(clippy::inline_always, reason = "the arguments of a call that is not recorded stay in their registers")]
#[inline(always)]
fn pass<R: Row>(via: usize, row: R) -> UrResult {
    // SAFETY: the stored function has the row's signature (`cuda.h`).
    unsafe {
        driver::pass(real(via, R::FUNCTION), row, true, || {
            report_once(via);
            Origin::Library(if makes_in_context(R::FUNCTION) { current_context(via) } else { 0 })
        })
    }
}

cu_functions!(hooks);
