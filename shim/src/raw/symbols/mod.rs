//! Loaded libraries and what addresses in them are called: for findings and for entry points, never on the way of a call.

pub mod demangle;
pub mod elf;
pub mod modules;
