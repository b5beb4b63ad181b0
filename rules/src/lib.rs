//! The tracker and the rules of urscope: the life of a handle, and what violates it.
//!
//! [`Tracker`] takes the calls of all processes in the order of time, holds what is alive, and emits
//! [facts](tracker::fact). [`Checker`] hands the facts to the rules of the [`catalog`], one file or
//! folder each. Both serve the analysis of traces and the validation of a running process.
//!
//! This crate must never read a file, ask a clock, start a thread or hold unsafe code: equal records
//! give equal findings.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod checker;
pub mod finding;
pub mod lifecycle;
mod place;
pub mod rule;
pub mod tracker;

pub use checker::Checker;
pub use finding::{Finding, Severity};
pub use place::{Place, ProcessId};
pub use rule::{Check, Rule, RuleState, When};
pub use tracker::{End, ExportId, Holder, Process, Rights, Shared, Tracker};
