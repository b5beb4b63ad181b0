//! # What it does
//!
//! Says that there was nothing to judge: no `urIPC*` call in the whole run.
//!
//! # Why it is bad
//!
//! A run without a finding would look clean though nothing was looked at. The program may do no IPC, it may have taken
//! another path than expected, or its runtime could not be traced.
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
//! See what the report says of each process's doors, and ask `urscope doctor` about the machine.

use super::{Check, Rule, When};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind},
};

pub(super) static RULE: Rule = Rule {
    code: "no-calls-seen",
    severity: Severity::Error,
    when: When::Run,
    title: "no IPC call was seen in the whole run, so there is nothing to judge",
    facts: &[FactKind::Finished],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if fact.tracker.ipc_calls() > 0 || fact.tracker.processes() == 0 {
        return None;
    }
    let message = "no call of a urIPC* function was seen in the whole run".into();
    let advice = "see which entry points are intercepted in each process, and run urscope doctor";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice))
}
