//! # What it does
//!
//! Notes memory that is freed before the handles got of it are put, while nobody has it open; and physical memory or an event
//! whose last reference is released before that.
//!
//! # Why it is bad
//!
//! It is not: SYCL allows it, and freeing the memory ends its handles. But the bytes of the handle are worthless from
//! then on, and nothing keeps a consumer that still holds them from opening them. The handles of physical memory and of
//! events do not end with it: their put is still to come.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Nothing has to be done. Put the handle before the free where the end of the sharing is to be seen in the program.

use urscope_schema::handle::Kind;

use super::{
    Check, Rule, When,
    wording::{call, number, of_size},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind, What},
};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-exported",
    severity: Severity::Note,
    when: When::Exit,
    title: "memory, physical memory or an event is freed before its handles are put, which is allowed",
    facts: &[FactKind::Freed],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Freed(freed) = fact.what else { return None };
    let got = freed.got.filter(|_| freed.handles > 0 && freed.holder.is_none())?;
    let what = freed.what;
    let (who, size, at) = (fact.actor(), of_size(freed.size), call(fact.at));
    let handles = number(freed.handles, "handle");
    let (frees, advice) = match what.kind {
        Kind::Usm => ("frees", "SYCL allows it; put before the free to be plain about it"),
        _ => (
            "releases",
            "it is allowed; put before the last release to be plain about it, for the put is due all the same",
        ),
    };
    let message =
        format!("{who} {frees} {what}{size} in {at} with {handles} of it not put, the last got in {}", call(got));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(got));
    Some(finding.values(freed.size, freed.fingerprint).advice(advice))
}
