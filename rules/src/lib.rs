//! The law of urscope: the life of a handle, and what is a violation.
//!
//! [`tracker::Tracker`] is fed the calls of all processes, in the order of time, and holds what lives; [`catalog`] has one
//! file per violation. The same tracker judges traces afterwards and a single process while it runs.
//!
//! This crate must never read a file, ask a clock, start a thread or hold unsafe code: equal records give equal findings.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod finding;
pub mod lifecycle;
pub mod scenario;
pub mod tracker;

pub use catalog::{Rule, When};
pub use finding::{Finding, Place, Severity};
pub use tracker::{End, ExportId, Holder, Process, ProcessId, Rights, Shared, Tracker};
