//! The machine and the job that a process is in, and how both sides of a trace speak of them: who owns a directory,
//! what a launcher tells, and how numbers are written for people.
//!
//! Nothing here asks the machine: callers pass what they have read.

pub mod launcher;
pub mod owners;
pub mod placeholders;
pub mod proc_stat;
pub mod ranks;
pub(crate) mod size;
