//! The path of a driver's hooked function: its call is recorded, as a call of the program or of the runtime, or passed
//! on.

use urscope_schema::api::{Effect, Function, ResultCode};
use urscope_schema::handle::Kind;
use urscope_schema::trace::records::EntryPoint;

use crate::call::{self, Origin};
use crate::layer::trace;
use crate::raw::args::inputs::Arguments;
use crate::raw::args::row::{Call, RealCall};
use crate::raw::call_stacks::caller::{self, Owner};
use crate::raw::{processes::fork, symbols::modules::Module};
use crate::sharing::event_filter::{self, Recording};
use crate::{inner, sharing::commands, stacks};

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

/// Passes a call on to the driver's function, recorded where that is wanted, as a call with the `origin`. A function
/// `stands_alone` if it is hooked as one of a library, not of a table.
#[inline]
pub(super) fn pass(call: &mut Call, stands_alone: bool, origin: impl FnOnce() -> Origin) -> ResultCode {
    let effect = call.function().effect();
    pass_known(effect, call, stands_alone, origin)
}

/// Passes a call on as [`pass`] does, whose function has this effect.
#[expect(clippy::inline_always, reason = "the effect is mostly a constant of the caller")]
#[inline(always)]
pub(super) fn pass_known(
    effect: Effect,
    call: &mut impl RealCall,
    stands_alone: bool,
    origin: impl FnOnce() -> Origin,
) -> ResultCode {
    let recording = recording(effect, call.arguments());
    if recording != Recording::No {
        if is_call_of_program(stands_alone) {
            fork::notice();
            return call::intercept_as(Some(recording), origin(), call);
        }
        if let Some(outer) = inner::inside_of(call.arguments().function()) {
            return call::intercept_inner(outer, call);
        }
    }
    // What the runtime does with its queues is part of one of its own calls.
    let is_of_order = matches!(effect, Effect::Creates(Kind::Queue) | Effect::Exposes(_)) || commands::are_recorded();
    if is_of_order && is_call_of_runtime() {
        return call::pass_on_inner(effect, call);
    }
    call::pass_on(effect, call)
}

/// Whether the runtime itself makes the current call, in one of its own.
#[inline]
pub(super) fn is_call_of_runtime() -> bool {
    caller::owner(caller::address()) == Owner::Runtime
}

/// Whether a call of the program with these arguments is recorded, and why.
#[expect(clippy::inline_always, reason = "the effect is mostly a constant of the caller")]
#[inline(always)]
fn recording(effect: Effect, arguments: &Arguments) -> Recording {
    let may_be = !matches!(effect, Effect::MayExport(_)) || arguments.inputs().ask_for_descriptor();
    if may_be { event_filter::recording(effect, arguments) } else { Recording::No }
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
