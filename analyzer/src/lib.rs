//! The analysis library of urscope: it reads the traces of many processes as one run and checks them against the rules.
//!
//! [`mod@analysis`] reads the files, feeds the rules in the order of time and gathers the findings; [`report`] shows these to
//! people and to programs, [`questions`] answers what else can be asked of a run, [`explain`] prints what the rules say of
//! themselves, and [`follow`] tells whether a run has grown. The command `urscope` (`command/`) is made of these.
//!
//! The library must never print, exit or run a program.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod explain;
pub mod follow;
pub mod lifetimes;
pub mod plain;
pub mod questions;
pub mod report;

pub use analysis::{
    AnalysisError, ExemptionError, Exemptions, Judgement, Options, Report, ReportError, Verdict, analyze, judge,
};
