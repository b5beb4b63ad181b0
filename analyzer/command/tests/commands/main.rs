//! The command as a process, and what it is made of.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first unexpected result"
)]

mod cli_look;
mod cli_run;
mod cli_wait;
mod command;
#[path = "../generator/mod.rs"]
mod generator;
mod merging;
mod profile;
mod scale;
mod tables;
mod timeline;
#[path = "../../../tests/analysis/traces.rs"]
#[allow(dead_code, reason = "other tests use it as well")]
mod traces;
mod view;
