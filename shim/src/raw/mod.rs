//! What the shim needs of the operating system and of the application's memory, as safe functions.
//!
//! Each file wraps one thing and names the promises that its unsafe blocks rely on. Nothing here may use another
//! module of the shim, and no safe function here may have undefined behaviour for any argument.

pub mod args;
pub mod caller;
pub mod chunks;
pub mod clock;
pub mod code_address;
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
pub mod unwinder;
pub mod unwound_callers;
#[macro_use]
mod variables;
