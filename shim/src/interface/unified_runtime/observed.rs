//! Observed calls, which urscope does not carry out: they are shown to it before they begin and after they return.
//!
//! The layers see such a call as one of [`crate::call`], with the same records. A layer's answer has no effect. Must
//! not write to the caller's memory. Devices are not described, because the adapter cannot be asked.

use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::Values;

use super::structures::Structures;
use crate::call::{self, Begin, Origin, Pending};
use crate::raw::args::{observed::Parameters, out_params::ObservedOutParams};

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    function: Function,
    /// `None` if it is not recorded.
    begun: Option<Pending>,
    out_params: ObservedOutParams,
}

/// Shows the enter of a call to adapter `via` to the layers.
pub(super) fn begins(function: Function, via: usize, parameters: Parameters) -> Observed {
    let mut arguments = parameters.arguments(function, &Structures);
    let begun = match call::begin::<false>(function, function.effect(), None, Origin::Xpti(via), &mut arguments) {
        Begin::Recorded(begun) => Some(begun),
        Begin::Unrecorded => {
            call::before_unrecorded(function.effect(), arguments.inputs());
            None
        }
        Begin::Answered(_) => None,
    };
    Observed { function, begun, out_params: ObservedOutParams::new(arguments) }
}

impl Observed {
    /// From which the answers of the call are read, if it is recorded.
    pub(super) fn out_params(&self) -> Option<&ObservedOutParams> {
        self.begun.is_some().then_some(&self.out_params)
    }

    /// Shows the exit of the call to the layers.
    pub(super) fn returns(self, result: ResultCode, answers: Values) {
        let inputs = self.out_params.arguments().inputs();
        match self.begun {
            Some(begun) => {
                let _ =
                    call::end::<false>(self.function, self.function.effect(), begun, inputs, result, Some(&answers));
            }
            None => call::after_unrecorded(self.function.effect(), self.out_params.arguments(), result),
        }
    }

    /// Shows the layers that the call ended by a C++ exception, for which the loader returns UNKNOWN.
    pub(super) fn record_exception(self) {
        if let Some(begun) = self.begun {
            begun.left_by_exception(self.function);
        }
    }
}
