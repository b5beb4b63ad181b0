//! The law of urscope: the life of a handle, and what is a sin.
//!
//! [`world::World`] is fed the calls of all processes, in the order of time, and holds what lives; [`catalog`] has one
//! file per sin. The same world judges traces afterwards and a single process while it runs.
//!
//! This crate must never read a file, ask a clock, start a thread or hold unsafe code: equal records give equal findings.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod finding;
pub mod life;
pub mod story;
pub mod world;

pub use catalog::{Rule, When};
pub use finding::{Finding, Place, Severity};
pub use world::{End, ExportId, Holder, Process, ProcessId, Rights, Shared, World};
