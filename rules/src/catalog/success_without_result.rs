//! # What it does
//!
//! Finds a call that answers success and leaves the caller's variable as it was: an allocation, a get or an open that made
//! nothing.
//!
//! # Why it is bad
//!
//! The program goes on with whatever stood in the variable before. The adapter for Level Zero v1 answers so to every get and
//! open that the driver refuses: an empty handle is sent, a null pointer is used, and the reason is lost.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p
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
//! producer: get p -> h fails
//! ```
//!
//! # What to do
//!
//! Take it for the failure that it is: make the variable null before the call and look at it behind it. With
//! `URSCOPE_ON_ERROR=refuse` the preloaded library turns it into an error. The v2 adapter answers errors itself.

use urscope_schema::api::UrResult;

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind, What},
};

pub(super) static RULE: Rule = Rule {
    code: "success-without-result",
    severity: Severity::Error,
    when: When::Exit,
    title: "a call answers success and has not made what it should have made",
    facts: &[FactKind::Refused],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Refused(refused) = fact.what else { return None };
    if !refused.result.is_success() {
        return None;
    }
    let (who, noun) = (fact.actor(), refused.kind.noun());
    let message = format!("{who} is told success by {} and is given no {noun}", call(fact.at));
    let advice = "take it for a failure; the reason is in the adapter's log, and the v2 adapter answers it";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice).answer(UrResult::INVALID_ARGUMENT))
}
