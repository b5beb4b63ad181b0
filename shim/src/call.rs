//! The hooks of an adapter's functions: one for each row of the function table and each adapter.
//!
//! A hook records the call around the real one. There is one per adapter, because a C function cannot know in whose
//! table it is. The code of all functions is alike; only the roles of the rows differ. Must never hold a lock or
//! allocate across the real call.

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::{
    api::{Function, UrResult, demand::Nulls, role::*},
    call::Values,
    ur_functions,
};

use crate::{
    backend, chain, commands, devices,
    event_filter::{self, Recording},
    inner, knobs,
    raw::{
        args::{
            Arg,
            inputs::{CallArguments, Inputs},
            out_params::{Opened, OpenedCopy, RedirectedOutParams},
        },
        fork,
        outer::Outer,
    },
    stacks,
};

macro_rules! hooks {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The hooks of adapter `VIA`.
        pub mod hook {
            use super::*;

            $(
                #[doc = $doc]
                pub extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    let mut nulls = Nulls::default();
                    $(nulls.note(Function::$name, stringify!($param), $param.null());)*
                    // Programs that share nothing make many of these calls.
                    if event_filter::passes_any(Function::$name) && nulls.is_empty() {
                        let result = backend::$name::<VIA>()($($param),*);
                        commands::note_return(Function::$name, result);
                        return result;
                    }
                    filtered::$name::<VIA>($($param),*)
                }
            )*
        }

        /// Continues a call that may be recorded. The arguments are passed on unchanged, so they stay in their
        /// registers.
        mod filtered {
            use super::*;

            $(
                #[inline(never)]
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    if !Function::$name.is_ipc() {
                        return recorded::$name(VIA, backend::$name::<VIA>(), $($param),*);
                    }
                    match backend::adapter_only::$name::<VIA>() {
                        Some(real) => recorded::$name(VIA, real, $($param),*),
                        None => resolved::$name::<VIA>($($param),*),
                    }
                }
            )*
        }

        /// Continues a call whose implementation is found by a function call, which needs the arguments to be saved.
        mod resolved {
            use super::*;

            $(
                #[cold]
                #[inline(never)]
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> UrResult {
                    recorded::$name(VIA, backend::$name::<VIA>(), $($param),*)
                }
            )*
        }

        /// Records a call: the part of a function's hooks that is common to all adapters.
        mod recorded {
            use super::*;

            $(
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "a row has the parameters of C")]
                pub(super) fn $name(via: usize, real: extern "C-unwind" fn($(Arg<$role>),*) -> UrResult, $($param: Arg<$role>),*) -> UrResult {
                    fork::notice();
                    let hot = knobs::hot();
                    let mut inputs = Inputs::default();
                    $(inputs.add($param);)*
                    let recording = if true $(&& $param.watched())* { event_filter::decide(Function::$name, &inputs) } else { Recording::No };
                    let mut nulls = Nulls::default();
                    $(nulls.note(Function::$name, stringify!($param), $param.null());)*
                    // A call with a missing argument is always recorded: it is a violation.
                    if recording == Recording::No && nulls.is_empty() {
                        let result = real($($param),*);
                        commands::note_return(Function::$name, result);
                        return result;
                    }
                    let event = recording.event();
                    let mut arguments = CallArguments::new(Some(via as u64));
                    $(arguments.add($param);)*
                    let (mut values, out_params) = arguments.record(&inputs);
                    values.stack = stacks::current(hot);
                    values.object = event.map_or(values.object, |event| Some(event as u64));
                    commands::add_shared_pointers(Function::$name, &inputs, &mut values);
                    let waits = commands::before(Function::$name, &mut values);
                    let (flags, pointer, blocking) = (values.flags, values.pointer, values.value);
                    let device = inputs.device();
                    devices::before(Function::$name, via, device);
                    let entered = chain::enter(hot, Function::$name, values, &nulls);
                    if let Some(answer) = entered.answer {
                        return exit_without_answers(Function::$name, entered.call, answer);
                    }
                    event_filter::enter(Function::$name, event);
                    let (mut answers, mut room) = (RedirectedOutParams::untouched(), OpenedCopy::room());
                    let opened = if Function::$name.opens().is_some() { room.take(&values) } else { Opened::NOTHING };
                    let redirection = answers.redirection(&out_params, opened);
                    let outer = inner::outer(Function::$name, entered.call);
                    let exception_guard = ExceptionGuard { function: Function::$name, call: entered.call, outer: &outer };
                    outer.begin();
                    let result = real($(redirection.redirect($param)),*);
                    outer.end();
                    std::mem::forget(exception_guard);
                    commands::after(Function::$name, entered.call, waits, blocking, result);
                    let values = out_params.carry_over(&answers, opened, result, pointer);
                    commands::note_shared(Function::$name, pointer, &values);
                    if result.is_success() {
                        devices::after(via, device);
                    }
                    event_filter::exit(Function::$name, event, flags, result, &values);
                    chain::exit(hot, Function::$name, entered.call, result, values)
                }
            )*
        }
    };
}

/// Records the exit of a call that ends by a C++ exception of the adapter. The exception passes through, and the
/// loader returns UNKNOWN for it.
struct ExceptionGuard<'a> {
    function: Function,
    call: u64,
    outer: &'a Outer,
}

impl Drop for ExceptionGuard<'_> {
    fn drop(&mut self) {
        self.outer.end();
        exit_without_answers(self.function, self.call, UrResult::UNKNOWN);
    }
}

/// Records the exit of a call without answers of the adapter.
#[cold]
#[inline(never)]
fn exit_without_answers(function: Function, call: u64, result: UrResult) -> UrResult {
    chain::exit(knobs::hot(), function, call, result, Values::NONE)
}

ur_functions!(hooks);
