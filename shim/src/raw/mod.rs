//! Safe functions for the operating system and for the application's memory.
//!
//! Each file wraps one thing and states what its unsafe blocks rely on. Nothing here uses other modules of the shim,
//! and no safe function has undefined behavior for any argument.

pub mod args;
pub mod caller;
pub mod chunks;
pub mod clock;
pub mod errno;
pub mod fork;
pub mod fork_lock;
pub mod fork_mark;
pub mod fork_reset;
pub mod hash_map;
pub mod interruptions;
pub mod late_functions;
pub mod lock;
pub mod mutex;
pub mod named_file;
#[cfg(feature = "frida-gum")]
pub mod nesting;
pub mod open_file;
pub mod outer;
pub mod pages;
pub mod plain_file;
pub mod process;
pub mod python;
mod recent_data;
pub mod reserve;
pub mod signal_stack;
pub mod software_device;
pub mod stack;
pub mod stderr;
pub mod symbols;
mod sync;
pub mod thread;
pub mod unwound_callers;
#[macro_use]
mod variables;
