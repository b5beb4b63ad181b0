//! The schema of urscope: calls and trace records.
//!
//! The shim fills [`call::Enter`] and [`call::Exit`] and writes them in a form of [`trace`]; the analyzer reads them
//! back. [`operation`] decodes a call. One table for each interface ([`api`]) lists its functions; every other list of
//! them is generated from it.
//!
//! This crate must never contain unsafe code, start a thread, open a file, or decide whether a call is correct.

#![forbid(unsafe_code)]

pub mod api;
pub mod call;
pub mod handle;
pub mod host;
pub mod operation;
pub mod trace;
mod values;

pub use host::size::{counted, duration, enumerated, grouped, short_size, since, size};
pub use trace::packed;
