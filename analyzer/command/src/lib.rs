//! The command `urscope`: runs programs under the shim, judges what they did, shows it, and says what a machine lacks.
//!
//! `main` is all that the binary calls. [`view`] and [`export`] are public so that tests can use them without a process of their
//! own. What can be known about a trace is known in the library `urscope-analyzer`; nothing of that may be decided here.

#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod doctor;
mod elf;
pub mod export;
mod output;
mod parts;
mod profile;
mod run;
mod top;
pub mod view;
mod window;

pub use commands::main;
