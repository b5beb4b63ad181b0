//! The hooks of a driver's functions: one for each row of Level Zero and each driver.
//!
//! The first instructions of a hook store the return address. A call of the program or its middleware is recorded. Any
//! other call is passed on, or recorded as an inner call.

use std::{arch::naked_asm, ffi::c_void, mem::offset_of};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Effect, Function, UrResult, role::*};
use urscope_schema::ze_functions;

use super::super::driver::{self, driver_hooks, may_export};
use super::{DRIVER_STATES as STATES, Driver, real, report_once};
use crate::call::Origin;
use crate::raw::args::row::{self, Row};
use crate::raw::args::{Arg, extensions};

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The hooks of functions that export if their third argument, a structure, has an extension. Otherwise they
        /// jump to the driver's function.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod property {
            use super::*;

            $(
                /// # Safety
                ///
                /// As for those in `command`.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    naked_asm!(
                        "test rdx, rdx",
                        "jz {entry}",
                        "cmp qword ptr [rdx + {next}], 0",
                        "jne {entry}",
                        "jmp qword ptr [rip + {known} + {place}]",
                        next = const extensions::NEXT,
                        entry = sym entry::$name::<VIA>,
                        known = sym STATES,
                        place = const place(VIA, Function::$name),
                    )
                }
            )*
        }

        /// The hook of `function` for driver `VIA`.
        pub(super) fn hook<const VIA: usize>(function: Function) -> Option<*mut c_void> {
            match function {
                $(Function::$name => Some(match EntryKind::of(Function::$name) {
                    EntryKind::Caller => entry::$name::<VIA> as *mut c_void,
                    EntryKind::Command => command::$name::<VIA> as *mut c_void,
                    EntryKind::Property => property::$name::<VIA> as *mut c_void,
                    EntryKind::Wait => passed::$name::<VIA> as *mut c_void,
                }),)*
                _ => None,
            }
        }
    };
}

/// The hook of a function.
enum EntryKind {
    /// It stores the caller, in `entry`.
    Caller,
    /// By `command`: nothing is of interest before the process shares memory.
    Command,
    /// By `property`.
    Property,
    /// It passes the call on, which is never recorded.
    Wait,
}

impl EntryKind {
    const fn of(function: Function) -> Self {
        if function.is_command() || function.executes() || matches!(function.effect(), Effect::Clears(_)) {
            Self::Command
        } else if may_export(function) {
            Self::Property
        } else if function.is_never_recorded() {
            Self::Wait
        } else {
            Self::Caller
        }
    }
}

/// The offset of a driver's function in `DRIVER_STATES`.
const fn place(via: usize, function: Function) -> usize {
    via * size_of::<Driver>() + offset_of!(Driver, functions) + function as usize * size_of::<usize>()
}

/// Passes a call on to driver `via`. There is one for each row, not for each hook.
#[inline(never)]
fn pass<R: Row>(via: usize, row: R) -> UrResult {
    // SAFETY: the stored function has the row's signature (`ze_api.h`, and `zex_memory.h` of Intel's driver).
    unsafe {
        driver::pass(real(via, R::FUNCTION), row, false, || {
            report_once(via);
            Origin::Driver
        })
    }
}

ze_functions!(driver_hooks);
ze_functions!(hooks);
