//! # What it does
//!
//! Reports handle data that is put although no get of this process returned it.
//!
//! # Why it is bad
//!
//! A put frees a buffer of the library. If it receives a copy of the bytes, data of another process or memory of the
//! application, it frees what the library does not own, and corrupts the heap. The adapters return success.
//!
//! # Example
//!
//! SYCL has no handle for received bytes. A program that calls Unified Runtime can put them:
//!
//! ```cpp
//! auto data = receive();
//! void *p = nullptr;
//! size_t n = data.size();
//! urIPCOpenMemHandleExp(
//!     ur_ctx, ur_dev, data.data(), n, &p);
//! urIPCCloseMemHandleExp(ur_ctx, p);
//! // Wrong: the exporter puts its own handle.
//! urIPCPutMemHandleExp(ur_ctx, data.data());
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = nullptr;
//! size_t n = data.size();
//! urIPCOpenMemHandleExp(
//!     ur_ctx, ur_dev, data.data(), n, &p);
//! urIPCCloseMemHandleExp(ur_ctx, p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: put h
//! consumer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! The consumer closes what it opened, the producer puts what it got. A forked child may put what its parent got: the
//! child has its own copy.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: fork child
//! child: put h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Keep the pointer that the get returned and put that pointer, in the process that got it. Bytes that were received
//! belong to the receiver: free them as they were allocated.

use urscope_schema::api::ResultCode;

use super::wording::{call, name};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::Violation;
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "put-of-unknown",
    severity: Severity::Error,
    when: When::Enter,
    title: "handle data is put that this process never got",
    sentence: "put handle data that it had never got",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    let Target::Nothing = ending.target else { return None };
    if ending.object.kind.shares().is_none() || ending.violation(ending.object.kind) != Some(Violation::NeverLived) {
        return None;
    }
    let who = fact.actor();
    let what = ending.object;
    // Handle data was opened from this address: the process has a copy of it there.
    let state = fact.tracker.state(fact.at.process)?;
    let original = state.opened_at.get(&what.value).and_then(|id| fact.tracker.exports.get(*id));
    let original = original.filter(|original| original.subject.kind == what.kind).map(|export| export.latest_get);
    let copy = original.map_or_else(String::new, |got| {
        let of = if got.process == fact.at.process { "this process".into() } else { name(fact.tracker, got.process) };
        format!("; it is a copy of the handle data that {of} got in {}", call(got))
    });
    let message = format!("{who} puts {what} in {}, but no get of this process returned it{copy}", call(fact.at));
    let finding = Finding::new(&RULE, fact.at, what, message).other(original);
    Some(
        finding
            .advice(
                "put exactly the pointer that the get returned, in the process that got it; never a copy of the bytes",
            )
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}
