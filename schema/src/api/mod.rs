//! The functions that urscope hooks, and everything that is generated from their tables.
//!
//! Each interface has a folder: `rows` are its functions and tables, `roles` the roles of parameters that only it has,
//! `results` its result codes, `constants` the numbers of its headers, and `mod` the value of [`interface::Interface`],
//! which says how its objects behave. [`common_roles`] are those that several have, [`role`] has all of them,
//! [`effect`] what functions do, [`function`] the lists that every other crate uses, [`demand`] what headers require of
//! arguments. Nothing here calls any function.

pub mod demand;
#[macro_use]
pub mod common_roles;
#[macro_use]
pub mod unified_runtime;
#[macro_use]
pub mod level_zero;
#[macro_use]
pub mod cuda;

/// Passes the rows of all interfaces to the macro `$sink`, in one call.
#[macro_export]
macro_rules! hooked_functions {
    ($($sink:ident)::+) => {
        ur_functions! { @rows [ze_functions] @rows [cu_functions] @rows [$($sink)::+] }
    };
}

/// Passes the tables of all interfaces to the macro `$sink`, in one call.
macro_rules! hooked_tables {
    ($sink:ident) => {
        ur_tables! { @rows [ze_tables] @rows [cu_tables] @rows [$sink] }
    };
}

pub mod effect;
pub mod function;
pub mod interface;
mod signatures;

/// The roles of all interfaces.
pub mod role {
    pub use super::common_roles::*;
    pub use super::cuda::roles::*;
    pub use super::level_zero::roles::*;
    pub use super::unified_runtime::roles::*;
}

pub use cuda::INTERFACE as CUDA;
pub use effect::Effect;
pub use function::{Function, INTERFACES, Table};
pub use interface::{Calls, Interface, Library, Promise, ResultCode};
pub use level_zero::INTERFACE as LEVEL_ZERO;
pub use unified_runtime::INTERFACE as UNIFIED_RUNTIME;
