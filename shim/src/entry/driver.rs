//! The path of a driver's hooked function: its call is recorded, as a call of the program or of the runtime, or passed on.

use std::ffi::c_void;

use urscope_schema::api::{Effect, Function, UrResult};
use urscope_schema::trace::records::EntryPoint;

use crate::call::{self, Origin};
use crate::event_filter::{self, Recording};
use crate::layer::trace;
use crate::raw::args::{inputs::Arguments, row::Row};
use crate::raw::call_stacks::caller::{self, Owner};
use crate::raw::{processes::fork, symbols::modules::Module};
use crate::{commands, inner, stacks};

/// Defines the hooks of a driver's rows, by what a hook does first: `entry` notes the caller, `command` asks whether the process shares
/// anything, and `passed` is what both go on with. The module that uses it has the `STATES` of its drivers, the `place` of a function in
/// them, and `pass`.
macro_rules! driver_hooks {
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
                    $crate::note_caller!(passed::$name::<VIA>)
                }
            )*
        }

        /// The hooks of commands, which jump to the driver's function while the process shares nothing: programs enqueue
        /// many commands.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod command {
            use super::*;

            $(
                /// # Safety
                ///
                /// The arguments are those of the function of this name, and the driver's function is stored.
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    std::arch::naked_asm!(
                        "cmp byte ptr [rip + {shares}], 0",
                        "jne {entry}",
                        "jmp qword ptr [rip + {known} + {place}]",
                        shares = sym $crate::commands::IS_SHARING,
                        entry = sym entry::$name::<VIA>,
                        known = sym STATES,
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
    };
}
pub(super) use driver_hooks;

/// Records that calls of a driver's `functions` are recorded.
pub(super) fn report(kind: &str, module: Option<&Module>, functions: &[Function]) {
    trace::entry_point(&EntryPoint {
        kind: kind.into(),
        library: module.map(Module::file_name).unwrap_or_default(),
        directory: module.map(Module::directory).unwrap_or_default(),
        slots: functions.len() as u32,
        ipc_slots: functions.iter().filter(|function| function.is_ipc()).count() as u32,
        functions: functions.iter().map(|function| function.name().to_owned()).collect(),
        ..EntryPoint::default()
    });
}

/// Passes a call on to the driver's function, recorded where that is wanted, as a call with the `origin`. The caller is
/// noted ([`note_caller`](crate::note_caller)). A function `stands_alone` if it is hooked as one of a library, not of a table.
///
/// # Safety
///
/// `address` is null or a function with the signature of the row.
#[inline]
pub(super) unsafe fn pass<R: Row>(
    address: *mut c_void,
    row: R,
    stands_alone: bool,
    origin: impl FnOnce() -> Origin,
) -> UrResult {
    const { assert!(size_of::<R::Real>() == size_of::<*mut c_void>()) };
    if address.is_null() {
        return R::FUNCTION.interface().result(UrResult::UNSUPPORTED_FEATURE);
    }
    // SAFETY: the caller's promise; `R::Real` has the signature of the row.
    let real = unsafe { std::mem::transmute_copy::<*mut c_void, R::Real>(&address) };
    let recording = recording(R::FUNCTION, &row.arguments());
    if recording != Recording::No {
        if is_call_of_program(stands_alone) {
            return intercept(recording, row, real, origin);
        }
        if let Some(outer) = inner::inside_of(R::FUNCTION) {
            return call::intercept_inner(outer, row, real);
        }
    }
    commands::before_unrecorded(R::FUNCTION);
    let result = row.call(real);
    commands::note_unrecorded(R::FUNCTION, row.arguments().inputs(), result);
    result
}

/// Records a call of the program.
#[inline(never)]
fn intercept<R: Row>(recording: Recording, row: R, real: R::Real, origin: impl FnOnce() -> Origin) -> UrResult {
    fork::notice();
    call::intercept_as(Some(recording), origin(), row, real)
}

pub(super) const fn may_export(function: Function) -> bool {
    matches!(function.effect(), Effect::MayExport(_))
}

/// Whether a call of the program with these arguments is recorded, and why.
#[expect(clippy::inline_always, reason = "decided when it is compiled: `function` is a constant")]
#[inline(always)]
fn recording(function: Function, arguments: &Arguments) -> Recording {
    let may_be = !may_export(function) || arguments.inputs().ask_for_descriptor();
    if may_be { event_filter::recording(function, arguments) } else { Recording::No }
}

/// Whether the program or its middleware makes the current call. A call from a loader or from libumf belongs to its
/// caller. The caller of libumf is an adapter, whose call is part of one of Unified Runtime, or a program that uses
/// libumf itself. In a recorded call it is the adapter. Otherwise the caller is looked up at each call, because
/// libumf puts handles and closes mappings late: when memory is freed, another handle is opened, or a pool or a
/// provider is destroyed.
///
/// A library may stand in front of another one, and call its functions in a recorded call.
fn is_call_of_program(stands_alone: bool) -> bool {
    match caller::owner(caller::address()) {
        Owner::Program => !stands_alone || !inner::is_in_runtime(),
        Owner::Runtime => false,
        Owner::Forwarder if inner::is_in_runtime() => false,
        Owner::Forwarder => {
            let caller = stacks::first_caller(|address| caller::owner(address) != Owner::Forwarder);
            caller.is_some_and(|address| caller::owner(address) == Owner::Program)
        }
    }
}
