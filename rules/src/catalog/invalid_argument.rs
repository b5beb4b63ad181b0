//! # What it does
//!
//! Reports a call with an argument that the header lists among the errors of its function: a null handle or pointer, a
//! size or a number of zero, unknown flags or flags that exclude each other.
//!
//! # Why it is bad
//!
//! The adapters leave these checks to Unified Runtime's validation layer, which is off by default. Without it a null is
//! ignored silently, or crashes in the loader or the driver, depending on the function and the release.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! // Wrong: p is null if memory is short.
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! if (p == nullptr)
//!   throw std::bad_alloc();
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ```
//!
//! # Bad trace
//!
//! ```text
//! consumer: close null fails
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
//! Check the result of the call that should have made the object.

use urscope_schema::api::demand::Wrong;

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "invalid-argument",
    severity: Severity::Error,
    when: When::Enter,
    title: "an argument is invalid according to the header",
    sentence: "passed an invalid argument",
    facts: &[FactKind::InvalidArgument],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidArgument(fault) = fact.what else { return None };
    // Flags that exclude each other have a rule of their own.
    if matches!(fault.why, Wrong::Together(_)) {
        return None;
    }
    let function = fact.at.function?;
    let message = format!("{} passes {} as {} in {}", fact.actor(), fault.why, fault.parameter, call(fact.at));
    let advice = format!(
        "{} is specified to return {} for it; check the result of the call that should have made the argument",
        function.name(),
        function.interface().result(fault.answer).text_of(function)
    );
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice).answer(fault.answer))
}
