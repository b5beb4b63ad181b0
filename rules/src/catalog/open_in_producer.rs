//! # What it does
//!
//! Notes memory that is opened in the very process that exported it, once for each process.
//!
//! # Why it is bad
//!
//! It is not, with Level Zero: the mapping is a second address of the same memory. But it needs a close of its own, it costs what a
//! mapping costs for memory that is at hand, and other backends refuse it: CUDA does. (Events and physical memory are left out.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: open h -> m
//! producer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A child that was forked is another process.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: fork consumer
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Compare who sent the bytes with oneself, and use the pointer that is there. Where it is on purpose, as in a test, suppress it.

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{call, handle, of_size, times},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "open-in-producer",
    severity: Severity::Note,
    when: When::End,
    title: "memory is opened in the process that exported it",
    source: include_str!("open_in_producer.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedHere(here) = fact.what else { return None };
    let (who, what, size) = (fact.actor(), handle(Kind::Mapping, here.pointer), of_size(here.size));
    let all = if here.count == 1 { String::new() } else { format!(", and did so {} in all", times(here.count)) };
    let message = format!(
        "{who} opened {what}{size} in {} from handle data that it had got itself, in {}{all}",
        call(here.opened),
        call(here.got)
    );
    let finding = Finding::new(&RULE, here.opened, what, message).other(Some(here.got));
    let finding = finding.values(here.size, Some(here.fingerprint));
    Some(finding.advice("use the pointer that is there: some backends refuse to open it here"))
}
