//! # What it does
//!
//! Reports the creation of an event with the IPC flag and with profiling.
//!
//! # Why it is bad
//!
//! An event with timestamps cannot be shared: the two flags exclude each other, and the call returns
//! `UR_RESULT_ERROR_INVALID_VALUE`.
//!
//! # Example
//!
//! The process that makes the event:
//!
//! ```cpp
//! // Wrong: no event can have both.
//! properties both{enable_ipc{true},
//!                 enable_profiling{true}};
//! auto event = make_event(ctx, both);
//! enqueue_signal_event(queue, event);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! properties shared{enable_ipc{true}};
//! properties timed{enable_profiling{true}};
//! auto event = make_event(ctx, shared);
//! auto stamp = make_event(ctx, timed);
//! enqueue_signal_event(queue, event);
//! enqueue_signal_event(queue, stamp);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc profiled fails 4
//! producer: event e ipc
//! producer: get-event e -> h
//! producer: put-event h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: event e ipc
//! producer: event f profiled
//! producer: get-event e -> h
//! producer: put-event h
//! producer: release-event e
//! ```
//!
//! # What to do
//!
//! Make two events: one that is shared, and one that is timed. A command can signal the first and be followed by the
//! second.

use urscope_schema::api::demand::Wrong;

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "profiled-ipc-event",
    severity: Severity::Error,
    when: When::Enter,
    title: "an event is made with the IPC flag and with profiling",
    sentence: "made an event with the IPC flag and with profiling",
    facts: &[FactKind::InvalidArgument],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidArgument(fault) = fact.what else { return None };
    if !matches!(fault.why, Wrong::Together(_)) {
        return None;
    }
    let message = format!("{} makes an event with the IPC flag and with profiling in {}", fact.actor(), call(fact.at));
    let advice = "make two events, one that is shared and one that is timed";
    Some(Finding::of_call(&RULE, fact.at, message).advice(advice).answer(fault.answer))
}
