//! The path of a driver's hooked function: its call is recorded, as a call of the program or of the runtime, or passed on.

use std::ffi::c_void;

use urscope_schema::api::{Effect, Function, UrResult};

use crate::call::{self, Origin};
use crate::event_filter::{self, Recording};
use crate::raw::args::{inputs::Arguments, row::Row};
use crate::raw::call_stacks::caller::{self, Owner};
use crate::raw::processes::fork;
use crate::{commands, inner, stacks};

/// Passes a call on to the driver's function, recorded where that is wanted, as a call with the `origin`. The caller is
/// noted ([`note_caller`](crate::note_caller)). A function `stands_alone` if it is hooked as one of a library, not of a table.
///
/// # Safety
///
/// `address` is null or a function with the signature of the row.
#[expect(clippy::inline_always, reason = "the arguments of a call that is not recorded stay in their registers")]
#[inline(always)]
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
    if is_recorded(R::FUNCTION, &row.arguments()) {
        if is_call_of_program(stands_alone) {
            return intercept(row, real, origin);
        }
        if let Some(outer) = inner::inside_of(R::FUNCTION) {
            return intercept_inner(outer, row, real);
        }
    }
    let result = row.call(real);
    commands::note_unrecorded(R::FUNCTION, row.arguments().inputs(), result);
    result
}

/// Records a call of the program.
#[inline(never)]
fn intercept<R: Row>(row: R, real: R::Real, origin: impl FnOnce() -> Origin) -> UrResult {
    fork::notice();
    call::intercept(origin(), row, real)
}

/// Records a call that the runtime makes in the recorded call with the number `outer`.
#[cold]
#[inline(never)]
fn intercept_inner<R: Row>(outer: u64, row: R, real: R::Real) -> UrResult {
    call::intercept(Origin::Inner(outer), row, real)
}

pub(super) const fn may_export(function: Function) -> bool {
    matches!(function.effect(), Effect::MayExport(_))
}

/// Whether a call of the program with these arguments is recorded.
#[inline]
fn is_recorded(function: Function, arguments: &Arguments) -> bool {
    let inputs = arguments.inputs();
    arguments.are_watched()
        && (!may_export(function) || inputs.ask_for_descriptor())
        && event_filter::decide(function, inputs) != Recording::No
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
