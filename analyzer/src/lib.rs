//! The judge of urscope: reads the traces of many processes as one story.
//!
//! [`mod@judge`] reads the files, feeds the law in the order of time and gathers what it says; [`report`] shows that to
//! people and to programs, [`questions`] answers what else can be asked of a run, [`explain`] what the rules say of
//! themselves, [`follow`] whether a run has grown, and [`view`] serves all of it to a browser. The command `urscope` is made of
//! these.
//!
//! The library must never print, exit or run a program.

#![forbid(unsafe_code)]

pub mod account;
pub mod explain;
#[cfg(feature = "command")]
pub mod export;
pub mod follow;
pub mod judge;
pub mod plain;
pub mod questions;
pub mod report;
#[cfg(feature = "command")]
pub mod view;

pub use judge::{
    ExemptionError, Exemptions, JudgeError, Judgement, Options, Report, ReportError, Verdict, hear, judge,
};
