//! # What it does
//!
//! Reports memory that its owner frees while a mapping of it is open, in another process or in the owner itself.
//!
//! # Why it is bad
//!
//! SYCL states that the free invalidates every mapping. What the consumer then reads is undefined: the old content, the
//! content of the next allocation, or a device fault. On today's adapters it usually looks right.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! producer: put h
//! producer: free p
//! consumer: close m
//! ```
//!
//! # Good trace
//!
//! A free that is refused frees nothing, and a consumer that was killed holds nothing.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! producer: free p fails
//! consumer: close m
//! victim: open h -> v
//! victim: close v
//! victim: open h -> v
//! victim: close v begins
//! victim: killed
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Let the consumer close before the producer frees: use a message back, a barrier, or the exit of the consumer.

use urscope_schema::counted;

use super::{
    Check, Rule, When,
    wording::{call, name, of_size},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind, What},
};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-open",
    severity: Severity::Error,
    when: When::Exit,
    title: "memory is freed while a process has it open",
    facts: &[FactKind::Freed],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Freed(freed) = fact.what else { return None };
    let (opened, pointer) = freed.holder?;
    let what = freed.what;
    let (who, size, at) = (fact.actor(), of_size(freed.size), call(fact.at));
    let holder =
        if opened.process == fact.at.process { "the same process".into() } else { name(fact.tracker, opened.process) };
    let others = match freed.holders - 1 {
        0 => String::new(),
        others => format!(" ({} more open)", counted(others, "mapping")),
    };
    let message = format!(
        "{who} frees {what}{size} in {at} while {holder} has it open as {pointer:#x}, since {}{others}",
        call(opened)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(opened));
    Some(finding.values(freed.size, freed.fingerprint).advice(
        "free only after every process has closed its mapping: wait for a message back, a barrier, or the consumer's exit",
    ))
}
