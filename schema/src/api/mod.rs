//! The Unified Runtime functions we stand in front of, and what is made from their table.
//!
//! [`ur`] holds the rows, [`role`] the vocabulary of their parameters, [`sinks`] the list of functions that every
//! other crate uses, [`result`] the result codes, [`demand`] what the header asks of arguments. Nothing here calls anything.

#[macro_use]
pub mod ur;
pub mod demand;
pub mod result;
pub mod role;
pub mod sinks;

pub use result::UrResult;
pub use sinks::{Effect, Function, Table};
