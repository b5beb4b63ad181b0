//! # What it does
//!
//! Finds a call with an argument that the header lists among the errors of its function: a null handle or pointer, a size
//! or a number of zero, flags that stand for nothing or exclude each other.
//!
//! # Why it is bad
//!
//! The adapters leave these checks to Unified Runtime's validation layer, which is off unless asked for. Without it a null
//! is passed over in silence, or crashes in the loader or the driver, depending on the function and the release.
//!
//! # Bad trace
//!
//! ```text
//! consumer: close null
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
//! ```
//!
//! # What to do
//!
//! Look at what the call that should have made the object answered. Places for answers are not recorded, so a missing one
//! is found by the preloaded library only.

use urscope_schema::api::demand::Wrong;

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind, What},
};

pub(super) static RULE: Rule = Rule {
    code: "invalid-argument",
    severity: Severity::Error,
    when: When::Enter,
    title: "an argument is one that the header lists among the errors of the function",
    facts: &[FactKind::InvalidArgument],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidArgument(fault) = fact.what else { return None };
    // That two flags exclude each other is told by a rule of its own.
    if matches!(fault.why, Wrong::Together(_)) {
        return None;
    }
    let function = fact.at.function.map_or("", |function| function.name());
    let message = format!("{} passes {} as {} in {}", fact.actor(), fault.why, fault.parameter, call(fact.at));
    let advice =
        format!("{function} promises {} for it; see what the call answered that should have made it", fault.answer);
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice).answer(fault.answer))
}
