//! The functions that urscope hooks, of Unified Runtime and of Level Zero, and everything that is generated from
//! their tables.
//!
//! [`ur`] and [`ze`] hold the rows, [`role`] the roles of their parameters, [`sinks`] the list of functions that
//! every other crate uses, [`result`] the result codes, [`constants`] flags and other numbers of the header,
//! [`demand`] what the header requires of arguments, `signatures` what upstream changed. Nothing here calls
//! any of them.

#[macro_use]
pub mod ur;
#[macro_use]
pub mod ze;
pub mod constants;
pub mod demand;
mod passed_handles;
pub mod result;
pub mod role;
mod signatures;
pub mod sinks;

pub use result::UrResult;
pub use sinks::{Effect, Function, Table};
