//! The command `urscope`: runs programs under the shim, analyzes their traces, shows results, and checks the machine.
//!
//! The binary calls only `main`. [`view`] and [`export`] are public so that tests can use them in their own process.
//! The library `urscope-analyzer` computes everything about a trace; this crate must not.

#![deny(unsafe_code)]

mod arguments;
mod commands;
mod config;
mod doctor;
mod elf;
pub mod export;
mod input;
mod output;
mod parts;
mod profile;
mod program;
mod run;
mod shell;
mod top;
pub mod view;
mod window;

pub use commands::main;
