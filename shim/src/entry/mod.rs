//! The functions of the C library that urscope wraps, and what the exported functions of interfaces do ([`exported`]).
//!
//! [`dlsym`] sees when a loader asks for tables, and a program for functions; the [`interface`](crate::interface) whose
//! name it is gives hooks. [`exec`] records `exec` calls.

pub mod dlsym;
pub mod exec;
pub mod exported;
