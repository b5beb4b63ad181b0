//! The backends implement the calls.
//!
//! [`adapter`] is the runtime's own, [`level_zero`] is urscope's. This module selects one by the kind of object
//! ([`Family`]), the adapter of the call, and `URSCOPE_BACKEND`. A backend must never unwind into C, and must not
//! return objects that the other one would take for its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, ResultCode, role::*};
use urscope_schema::{handle::Kind, ur_functions};

use self::adapter::registry;
use crate::knobs::{self, BackendChoice};
use crate::raw::args::row::{Callee, Frame, Row};
use crate::raw::{args::Arg, errno};

pub mod adapter;
pub mod level_zero;

/// A kind of object that can be shared. All functions of one kind use the same backend, because they use its objects.
/// Handle data contain the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Family {
    /// USM and its mappings.
    Memory = 1,
    /// Physical memory.
    PhysicalMem = 2,
    /// Events.
    Event = 3,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Memory, Self::PhysicalMem, Self::Event];

    /// The function that an adapter has if it can share this kind.
    const fn export(self) -> Function {
        match self {
            Self::Memory => Function::urIPCGetMemHandleExp,
            Self::PhysicalMem => Function::urIPCGetPhysMemHandleExp,
            Self::Event => Function::urIPCGetEventHandleExp,
        }
    }

    /// The family of a function; `None` if it belongs to all of them.
    const fn for_function(function: Function) -> Option<Self> {
        match function.effect().kind() {
            Kind::Usm | Kind::MemHandle | Kind::Mapping => Some(Self::Memory),
            Kind::PhysicalMem | Kind::PhysicalMemHandle => Some(Self::PhysicalMem),
            Kind::Event | Kind::EventHandle => Some(Self::Event),
            Kind::Adapter
            | Kind::Device
            | Kind::Context
            | Kind::Pool
            | Kind::EventPool
            | Kind::EventPoolHandle
            | Kind::Queue
            | Kind::Module => None,
        }
    }

    /// Whether urscope's backend implements this kind for adapter `via`.
    pub fn uses_level_zero(self, via: usize) -> bool {
        match knobs::read().backend {
            BackendChoice::Adapter => false,
            BackendChoice::LevelZero => registry::is_level_zero(via),
            BackendChoice::Auto => !adapter::has(via, self.export()) && registry::is_level_zero(via),
        }
    }
}

/// Whether urscope's backend gets the calls of `function` to adapter `via`.
#[inline]
pub fn uses_level_zero(function: Function, via: usize) -> bool {
    match Family::for_function(function) {
        Some(family) => family.uses_level_zero(via),
        None => Family::ALL.into_iter().any(|family| family.uses_level_zero(via)),
    }
}

/// Whether a few instructions show that adapter `via` implements a function.
#[inline]
fn is_adapter_only(function: Function, via: usize) -> bool {
    function.is_command()
        || function.effect().is_never_recorded()
        || knobs::hot_or_nothing().prefers_adapter()
            && Family::for_function(function).is_some_and(|family| adapter::has(via, family.export()))
}

/// Forgets the parent's objects, which a forked child must not put or close.
pub fn after_fork_in_child() {
    level_zero::after_fork_in_child();
}

/// A function of [`Backend`] by the kind of its object. The default is the adapter's for objects that only adapters
/// make. For others there is none, so that a row without an implementation does not compile.
macro_rules! backend_function {
    (@of_adapter $doc:literal $name:ident($($param:ident: $role:ident),*)) => {
        #[doc = $doc]
        #[allow(clippy::too_many_arguments, reason = "a row has the parameters of C")]
        fn $name(&self, $($param: Arg<$role>),*) -> ResultCode {
            adapter::$name(self.via())($($param),*)
        }
    };
    (@of_backend $doc:literal $name:ident($($param:ident: $role:ident),*)) => {
        #[doc = $doc]
        #[allow(clippy::too_many_arguments, reason = "a row has the parameters of C")]
        fn $name(&self, $($param: Arg<$role>),*) -> ResultCode;
    };
    ($verb:ident Adapter $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    ($verb:ident Context $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    ($verb:ident Device $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    ($verb:ident Pool $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    ($verb:ident Queue $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    // Adapters allocate USM; the handle data and the mappings are the backend's.
    (Exports Usm $($row:tt)*) => { backend_function!(@of_backend $($row)*); };
    (Puts Usm $($row:tt)*) => { backend_function!(@of_backend $($row)*); };
    (Opens Usm $($row:tt)*) => { backend_function!(@of_backend $($row)*); };
    (Closes Usm $($row:tt)*) => { backend_function!(@of_backend $($row)*); };
    ($verb:ident Usm $($row:tt)*) => { backend_function!(@of_adapter $($row)*); };
    ($verb:ident $kind:ident $($row:tt)*) => { backend_function!(@of_backend $($row)*); };
}

macro_rules! backends {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        /// A backend of urscope. It implements all functions of the objects that it makes, or passes them on itself.
        /// This one does not, and does not compile:
        ///
        /// ```compile_fail,E0046
        /// struct Incomplete;
        ///
        /// impl urscope_shim::backend::Backend for Incomplete {
        ///     fn via(&self) -> usize {
        ///         0
        ///     }
        /// }
        /// ```
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        pub trait Backend {
            /// The number of the adapter that is called.
            fn via(&self) -> usize;

            $(backend_function!($verb $kind $doc $name($($param: $role),*));)*
        }

        /// Carries out a call of a function of Unified Runtime by a backend; `None` for another function.
        fn carry_out(function: Function, backend: &level_zero::LevelZero, frame: Frame) -> Option<ResultCode> {
            let row = Row::for_function(function);
            let mut arguments = 0..;
            let mut next = || arguments.next().unwrap_or_default();
            match function {
                $(Function::$name => {
                    $(let $param = frame.argument::<$role>(row, next())?;)*
                    Some(Backend::$name(backend, $($param),*))
                })*
                _ => None,
            }
        }
    };
}

ur_functions!(backends);

/// What carries out a call of `function` to adapter `via`.
#[inline]
pub fn callee(function: Function, via: usize) -> Callee {
    let is_adapters = is_adapter_only(function, via) || !uses_level_zero(function, via);
    if is_adapters { adapter::callee(via, function) } else { Callee::Own(own, function, via) }
}

/// Carries out a call by urscope's backend. Nothing unwinds into C, and errno stays.
fn own(function: Function, via: usize, frame: Frame) -> ResultCode {
    let call = || carry_out(function, &level_zero::LevelZero::new(via), frame);
    errno::preserve(|| catch_unwind(AssertUnwindSafe(call)).ok().flatten().unwrap_or(ResultCode::UNKNOWN))
}
