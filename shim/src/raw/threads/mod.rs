//! Threads: their variables, what they are, and locks.

pub mod fork_lock;
pub mod lock;
pub mod mutex;
#[cfg(feature = "frida-gum")]
pub mod nesting;
pub(super) mod recent_data;
pub mod thread;
pub(super) mod variables;
