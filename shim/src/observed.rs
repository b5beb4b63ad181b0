//! Observed calls, which urscope does not carry out: they are shown to it before they begin and after they return.
//!
//! The layers see such a call as one of [`crate::call`], with the same records. A layer's answer has no effect. Must
//! not write to the caller's memory. Devices are not described, because the adapter cannot be asked.

use urscope_schema::api::{Function, UrResult};
use urscope_schema::{call::Values, ur_functions};

use crate::call::{self, Begin, Begun, Origin};
use crate::commands;
use crate::raw::args::row::{self, Row};
use crate::raw::args::{AdapterHandle, inputs::Arguments, observed::Parameters, out_params::ObservedOutParams};

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    function: Function,
    /// `None` if it is not recorded.
    begun: Option<Begun>,
    out_params: ObservedOutParams,
}

macro_rules! observed {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        /// The handle by which the loader dispatches a call of `function`.
        pub(crate) fn dispatched_by(function: Function, parameters: Parameters) -> Option<AdapterHandle> {
            match function {
                $(Function::$name => row::$name::dispatched_by(parameters),)*
                _ => None,
            }
        }

        fn arguments(function: Function, parameters: Parameters) -> Option<Arguments> {
            match function {
                $(Function::$name => Some(row::$name::observed(parameters).arguments()),)*
                _ => None,
            }
        }
    };
}

ur_functions!(observed);

/// Shows the enter of a call to adapter `via` to the layers; `None` for a function that is not hooked.
pub(crate) fn begins(function: Function, via: usize, parameters: Parameters) -> Option<Observed> {
    let arguments = arguments(function, parameters)?;
    let begun = match call::begin(function, None, Origin::Xpti(via), &arguments) {
        Begin::Recorded(begun) => Some(begun),
        Begin::Unrecorded | Begin::Answered(_) => None,
    };
    Some(Observed { function, begun, out_params: ObservedOutParams::of(&arguments) })
}

impl Observed {
    /// From which the answers of the call are read, if it is recorded.
    pub(crate) fn out_params(&self) -> Option<&ObservedOutParams> {
        self.begun.is_some().then_some(&self.out_params)
    }

    /// Shows the exit of the call to the layers.
    pub(crate) fn returns(self, result: UrResult, answers: Values) {
        match self.begun {
            Some(begun) => drop(call::end(self.function, begun, result, answers)),
            None => commands::note_return(self.function, result),
        }
    }

    /// Shows the layers that the call ended by a C++ exception, for which the loader returns UNKNOWN.
    pub(crate) fn record_exception(self) {
        if let Some(begun) = self.begun {
            begun.left_by_exception(self.function);
        }
    }
}
