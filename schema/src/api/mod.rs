//! The Unified Runtime functions that urscope hooks, and everything that is generated from their table.
//!
//! [`ur`] holds the rows, [`role`] the roles of their parameters, [`sinks`] the list of functions that every other crate
//! uses, [`result`] the result codes, [`constants`] flags and other numbers of the header, [`demand`] what the header requires
//! of arguments. Nothing here calls a function of Unified Runtime.

#[macro_use]
pub mod ur;
pub mod constants;
pub mod demand;
pub mod result;
pub mod role;
pub mod sinks;

pub use result::UrResult;
pub use sinks::{Effect, Function, Table};
