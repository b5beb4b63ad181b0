//! The rows of the function table as types: each holds the arguments of one call, in the order of C.
//!
//! [`rows`](crate::rows) makes the types. It is all that is made by a macro of a call's path ([`crate::call`]).

#![expect(clippy::inline_always, reason = "the compiler knows the row of a call that has a path of its own")]

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
#[allow(clippy::wildcard_imports, reason = "each interface has a macro for its rows")]
use urscope_schema::*;

use super::{AdapterHandle, inputs::Arguments, observed::Parameters, out_params::Redirection};

/// The arguments of a call of one hooked function.
///
/// # Safety
///
/// [`Row::Real`] is a pointer to a C function of the row's signature, and [`Row::call`] calls it with these arguments and
/// returns its result: a success says that the caller's variables are filled.
pub unsafe trait Row: Copy {
    /// The function.
    const FUNCTION: Function;

    /// The type of the C function.
    type Real: Copy;

    /// The arguments in the form in which they are recorded.
    fn arguments(&self) -> Arguments;

    /// The arguments to pass on.
    #[must_use]
    fn redirected(self, to: &Redirection) -> Self;

    /// Calls a function with the arguments.
    fn call(self, real: Self::Real) -> UrResult;

    /// The arguments of an observed call.
    fn observed(parameters: Parameters) -> Self;

    /// The handle by which the loader dispatches an observed call.
    fn dispatched_by(parameters: Parameters) -> Option<AdapterHandle>;
}

/// A call of a hooked function that can be made, whichever function it is.
///
/// # Safety
///
/// [`RealCall::make`] calls the function of [`RealCall::arguments`] with these, redirected as it is told, and returns its result.
pub unsafe trait RealCall {
    /// The arguments in the form in which they are recorded.
    fn arguments(&self) -> &Arguments;

    /// Makes the call.
    fn make(&self, to: &Redirection) -> UrResult;
}

/// The call of a row.
pub struct RowCall<R: Row> {
    arguments: Arguments,
    row: R,
    real: R::Real,
}

impl<R: Row> RowCall<R> {
    /// The call of `real` with the arguments of the row.
    #[inline(always)]
    pub fn new(row: R, real: R::Real) -> Self {
        Self { arguments: row.arguments(), row, real }
    }
}

// SAFETY: `call` is one call (`Row`), and all three are from `new`.
unsafe impl<R: Row> RealCall for RowCall<R> {
    #[inline(always)]
    fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    #[inline(always)]
    fn make(&self, to: &Redirection) -> UrResult {
        self.row.redirected(to).call(self.real)
    }
}

/// Makes a type for each row that it gets. `Function`, `UrResult` and the roles must be in scope.
#[macro_export]
macro_rules! rows {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        $(
            #[doc = $doc]
            #[allow(non_camel_case_types, reason = "the names are those of the C functions")]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(
                    #[doc = concat!("The parameter `", stringify!($param), "`.")]
                    pub $param: $crate::raw::args::Arg<$role>,
                )*
            }

            // SAFETY: `call` is one call.
            #[allow(unused_mut, unused_variables, reason = "a function may have no parameters")]
            unsafe impl $crate::raw::args::row::Row for $name {
                const FUNCTION: Function = Function::$name;

                type Real = extern "C-unwind" fn($($crate::raw::args::Arg<$role>),*) -> UrResult;

                #[inline(always)]
                fn arguments(&self) -> $crate::raw::args::inputs::Arguments {
                    let mut arguments = $crate::raw::args::inputs::Arguments::none(Function::$name);
                    $(arguments.add(stringify!($param), self.$param);)*
                    arguments
                }

                #[inline(always)]
                fn redirected(self, to: &$crate::raw::args::out_params::Redirection) -> Self {
                    Self { $($param: to.redirect(self.$param)),* }
                }

                #[inline(always)]
                fn call(self, real: Self::Real) -> UrResult {
                    real($(self.$param),*)
                }

                fn observed(parameters: $crate::raw::args::observed::Parameters) -> Self {
                    // Fields are evaluated in the order in which they are written.
                    let mut place = 0..;
                    Self { $($param: parameters.get::<$role>(place.next().unwrap_or_default())),* }
                }

                fn dispatched_by(
                    parameters: $crate::raw::args::observed::Parameters,
                ) -> Option<$crate::raw::args::AdapterHandle> {
                    $crate::rows!(@first parameters, $($role)*)
                }
            }
        )*
    };
    (@first $parameters:ident,) => {
        None
    };
    (@first $parameters:ident, $first:ident $($others:ident)*) => {
        $parameters.dispatched_by::<$first>()
    };
}

hooked_functions!(rows);
