//! What the rest of the shim needs of the operating system and of the application's memory, as safe functions.
//!
//! Small and few: each file wraps one thing, and says on which promise its unsafe blocks rest.

pub mod args;
pub mod clock;
pub mod fork_reset;
pub mod pages;
pub mod process;
pub mod stack;
pub mod stderr;
pub mod symbols;
pub mod thread;
