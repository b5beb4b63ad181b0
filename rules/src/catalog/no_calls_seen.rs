//! # What it does
//!
//! Reports that there was nothing to judge: the whole run contains no call that shares anything.
//!
//! # Why it is bad
//!
//! A run without findings would look clean although nothing was checked. The program may not use IPC, it may have taken
//! another path than expected, or its runtime could not be traced.
//!
//! # Example
//!
//! A program that is started by `sudo`, which drops `LD_PRELOAD`:
//!
//! ```sh
//! urscope run -- sudo ./app # Wrong
//! ```
//!
//! Fixed:
//!
//! ```sh
//! sudo urscope run -- ./app
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! See which entry points the report lists for each process, and check the machine with `urscope doctor`.

use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind};

pub(super) static RULE: Rule = Rule {
    code: "no-calls-seen",
    severity: Severity::Error,
    when: When::Run,
    title: "the whole run contains no IPC call, so there is nothing to judge",
    sentence: "made no IPC call",
    facts: &[FactKind::Finished],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if fact.tracker.ipc_calls() > 0 || fact.tracker.processes() == 0 {
        return None;
    }
    let message = "the whole run contains no call that shares anything".into();
    let advice = "see which entry points are intercepted in each process, and run urscope doctor";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice))
}
