//! The hooks of the CUDA driver's functions: one for each row and each library.

use std::{ffi::c_void, mem::offset_of};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Effect, Function, UrResult, role::*};
use urscope_schema::cu_functions;
use urscope_schema::handle::{Kind, UsmType};

use super::super::driver::{self, driver_hooks};
use super::{LIBRARY_STATES as STATES, Library, current_context, for_library, real, report_once};
use crate::call::Origin;
use crate::raw::args::Arg;
use crate::raw::args::row::{self, Row};

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The hook of `function` for the library with this number.
        pub(super) fn hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => Some(if Function::$name.is_command() || Function::$name.submits() {
                    for_library!(via, command::$name)
                } else if Function::$name.is_never_recorded() {
                    for_library!(via, passed::$name)
                } else {
                    for_library!(via, entry::$name)
                }),)*
                _ => None,
            }
        }
    };
}

/// Whether a call makes something that belongs to the current context. Memory of a pool and physical memory belong to a device.
fn makes_in_context(function: Function) -> bool {
    match function.effect() {
        Effect::Allocates(_) => function.usm_type() != Some(UsmType::Pool),
        Effect::Opens(Kind::Usm | Kind::Event) | Effect::Creates(Kind::Event) => true,
        _ => false,
    }
}

/// The offset of a library's function in `LIBRARY_STATES`.
const fn place(via: usize, function: Function) -> usize {
    via * size_of::<Library>() + offset_of!(Library, functions) + function as usize * size_of::<usize>()
}

/// Passes a call on to the library with this number. There is one for each row, not for each hook.
#[inline(never)]
fn pass<R: Row>(via: usize, row: R) -> UrResult {
    // SAFETY: the stored function has the row's signature (`cuda.h`).
    unsafe {
        driver::pass(real(via, R::FUNCTION), row, true, || {
            report_once(via);
            Origin::Library(if makes_in_context(R::FUNCTION) { current_context(via) } else { 0 })
        })
    }
}

cu_functions!(driver_hooks);
cu_functions!(hooks);
