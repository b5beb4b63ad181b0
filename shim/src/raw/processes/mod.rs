//! Processes: what this one is, and forks of it.

pub mod fork;
pub mod fork_mark;
pub mod fork_reset;
pub mod observer;
pub mod process;
