//! The C boundary: pointer arguments, handles, result codes and the structures of ze_api.h.

pub(crate) mod arguments;
pub(crate) mod handles;
pub mod layout;
pub(crate) mod result;

pub(crate) use arguments::{Address, In, Out, enumerate, text};
