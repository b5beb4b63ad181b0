//! Safe functions for the operating system and for the application's memory.
//!
//! Each file wraps one thing and states what its unsafe blocks rely on. Nothing here uses other modules of the shim,
//! and no safe function has undefined behavior for any argument.

pub mod args;
pub mod call_stacks;
pub mod clock;
pub mod errno;
pub mod files;
pub mod late_functions;
pub mod memory;
pub mod originals;
pub mod processes;
pub mod python;
pub mod signals;
pub mod software_device;
pub mod stderr;
pub mod symbols;
pub mod threads;
pub mod trace_file;
