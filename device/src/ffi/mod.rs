//! The C boundary: arguments, handles, result codes and the structures of ze_api.h.
//!
//! Must never offer a safe way to make an argument type from a number: only a C caller does that.

#[expect(unsafe_code, reason = "reads and writes through the pointer arguments of C callers")]
pub(crate) mod arguments;
#[expect(unsafe_code, reason = "closes descriptors that C callers have transferred")]
pub(crate) mod descriptor;
pub(crate) mod handles;
#[expect(unsafe_code, reason = "promises how the structures in pNext chains begin")]
pub mod layout;
pub(crate) mod result;

pub(crate) use arguments::{Address, Argument, HostFunction, In, Out, Pointer, UserData, enumerate, text};
