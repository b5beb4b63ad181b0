//! # What it does
//!
//! Says that a process got and put the same handle data over and over: a hundred times or more, each time after all of it had been put.
//!
//! # Why it is bad
//!
//! It is allowed, and it costs: each get and put is a call into the adapter, some of them reach the driver, and each consumer opens anew
//! what it could have kept open. The note says what the calls cost here.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! 101 times
//! producer: get p -> h
//! producer: put h
//! end
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! 200 times
//! producer: get p -> i
//! producer: put i
//! end
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Keep the handle data as long as the memory lives, and put it once, before the free.

use super::{
    Rule, When,
    wording::{call, handle},
};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        exports::Export,
        fact::{Fact, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "churn",
    severity: Severity::Note,
    when: When::End,
    title: "the same handle data is got and put over and over",
    source: include_str!("churn.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Churned(export) = fact.what else { return None };
    let Export { subject, gets, again, spent, .. } = export;
    let what = handle(subject.kind.shares().unwrap_or(subject.kind), subject.value.unwrap_or_default());
    let message = format!(
        "{} got the handle data of {what} {gets} times, {again} times after having put all of it, the last time in {}; its gets \
         and puts took {} ms",
        fact.actor(),
        call(fact.at),
        spent.div_ceil(1_000_000)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).values(subject.size, Some(export.fingerprint()));
    Some(finding.advice("keep the handle data as long as the memory lives, and put it once"))
}
