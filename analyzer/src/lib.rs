//! The analysis library of urscope: it reads the traces of many processes as one run and checks them against the rules.
//!
//! [`mod@analysis`] reads the files, feeds the rules in the order of time and collects the findings. [`report`] writes
//! them for people and for programs, [`questions`] answers other questions about a run, [`lifetimes`] tracks the
//! lifetimes of handles and openings, [`explain`] shows the documentation of the rules, and [`follow`] detects whether
//! a run has grown. [`files`] opens files where others may write, [`sources`] finds lines of source, and [`plain`]
//! removes control characters from text. The command `urscope` (`command/`) uses this library.
//!
//! The library must never print, exit or run a program.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod explain;
pub mod files;
pub mod follow;
pub mod lifetimes;
mod nearest;
pub mod plain;
pub mod questions;
pub mod report;
pub mod signals;
pub mod sources;

pub use analysis::{
    AnalysisError, ExemptionError, Exemptions, Judgement, Options, Report, ReportError, Verdict, analyze, judge,
};
