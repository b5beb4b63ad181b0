//! Observed calls, which urscope does not carry out: they are shown to it before they begin and after they return.
//!
//! The layers see such a call as one of [`crate::call`], with the same records. A layer's answer has no effect. Must
//! not write to the caller's memory. Devices are not described, because the adapter cannot be asked.

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::{
    api::{Function, UrResult, demand::Nulls, role::*},
    call::Values,
    ur_functions,
};

use crate::{
    chain,
    commands::{self, WaitState},
    event_filter::{self, Recording},
    knobs,
    raw::{
        args::{
            AdapterHandle,
            inputs::{CallArguments, Inputs},
            observed::Parameters,
            out_params,
        },
        fork,
    },
    stacks,
};

/// The state of a call that has begun, without what its arguments show again at the exit. It is small, because each
/// thread has some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    function: Function,
    via: u8,
    /// Whether its enter was recorded.
    is_recorded: bool,
    call: u64,
    /// The event because of which it is recorded; 0 for none.
    event: usize,
    waits: WaitState,
    /// The result of [`out_params::extent`]; 0 for none.
    extent: u64,
}

/// The arguments of a call, in the form in which they are recorded.
struct ReadArguments {
    inputs: Inputs,
    arguments: CallArguments,
    nulls: Nulls,
    /// Whether a call with these arguments is recorded.
    is_watched: bool,
}

macro_rules! observed {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The handle by which the loader dispatches a call of `function`.
        pub(crate) fn dispatched_by(function: Function, parameters: Parameters) -> Option<AdapterHandle> {
            match function {
                $(Function::$name => of_first!(parameters, $($role)*),)*
                _ => None,
            }
        }

        fn read(function: Function, via: usize, parameters: Parameters) -> Option<ReadArguments> {
            let mut inputs = Inputs::default();
            let mut arguments = CallArguments::new(Some(via as u64));
            let mut nulls = Nulls::default();
            let (mut is_watched, mut place) = (true, 0);
            match function {
                $(Function::$name => {
                    $(
                        let $param = parameters.get::<$role>(place);
                        place += 1;
                        inputs.add($param);
                        is_watched &= $param.watched();
                        nulls.note(function, stringify!($param), $param.null());
                        arguments.add($param);
                    )*
                })*
                _ => return None,
            }
            // The value after the last parameter is unused.
            let _ = place;
            Some(ReadArguments { inputs, arguments, nulls, is_watched })
        }
    };
}

macro_rules! of_first {
    ($parameters:ident, $first:ident $($others:ident)*) => {
        $parameters.dispatched_by::<$first>()
    };
}

ur_functions!(observed);

/// Shows the enter of a call to adapter `via` to the layers; `None` for a function that is not hooked.
pub(crate) fn begins(function: Function, via: usize, parameters: Parameters) -> Option<Observed> {
    fork::notice();
    let ReadArguments { inputs, arguments, nulls, is_watched } = read(function, via, parameters)?;
    let recording = if is_watched { event_filter::decide(function, &inputs) } else { Recording::No };
    let event = recording.event();
    let via = via as u8;
    let waits = WaitState::default();
    let unrecorded =
        Observed { function, via, is_recorded: false, call: 0, event: event.unwrap_or(0), waits, extent: 0 };
    if recording == Recording::No && nulls.is_empty() {
        return Some(unrecorded);
    }
    let (mut values, _) = arguments.record(&inputs);
    values.stack = stacks::current(knobs::hot());
    values.object = event.map_or(values.object, |event| Some(event as u64));
    let waits = commands::before(function, &mut values);
    let extent = if function.opens().is_some() { out_params::extent(&values).unwrap_or(0) } else { 0 };
    let entered = chain::enter(knobs::hot(), function, values, &nulls);
    event_filter::enter(function, event);
    Some(Observed { is_recorded: true, call: entered.call, waits, extent, ..unrecorded })
}

impl Observed {
    /// Shows the exit of the call to the layers. Its arguments are still readable.
    pub(crate) fn returns(self, parameters: Parameters, result: UrResult) {
        let Self { function, via, is_recorded, call, event, waits, extent } = self;
        let read = if is_recorded { read(function, via.into(), parameters) } else { None };
        let Some(ReadArguments { inputs, arguments, .. }) = read else {
            commands::note_return(function, result);
            return;
        };
        let (Values { flags, pointer, value: blocking, .. }, out_params) = arguments.described(&inputs);
        commands::after(function, call, waits, blocking, result);
        let values = out_params.read(result, pointer, Some(extent).filter(|extent| *extent != 0));
        event_filter::exit(function, Some(event).filter(|event| *event != 0), flags, result, &values);
        chain::returned(knobs::hot(), function, call, result, values);
    }

    /// Shows the layers that the call ended by a C++ exception, for which the loader returns UNKNOWN.
    pub(crate) fn record_exception(self) {
        if self.is_recorded {
            chain::returned(knobs::hot(), self.function, self.call, UrResult::UNKNOWN, Values::NONE);
        }
    }
}
