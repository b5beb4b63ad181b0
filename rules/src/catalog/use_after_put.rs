//! # What it does
//!
//! Reports handle data that is opened, in this process or another one, after the last handle with these bytes was put.
//!
//! # Why it is bad
//!
//! A put declares that no process will open the bytes any more. The result of a later open depends on the kind and the
//! adapter. Physical memory cannot be opened, because the put has closed its descriptor. Memory can be opened as long
//! as it is not freed, and an event as long as it lives. A failed open is an error, a successful one a warning. For an
//! event a successful open is a note, because the header states that the put does not destroy the event. (SYCL 2026.2
//! keeps the handle data of an event until the event is destroyed, whatever the program puts.)
//!
//! If the memory is freed as well, the rule [`use-after-free`](#use-after-free) reports it.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! auto data = handle.data();
//! ipc::memory::put(handle, ctx);
//! // Wrong: the other process opens it later.
//! send(data);
//! barrier();
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-physical h
//! consumer: open-physical h -> n fails
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! What is open stays open. Two gets of the same memory return equal bytes, which are valid until the second put.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p -> h2
//! producer: put h
//! consumer: open h -> m
//! producer: put h2
//! consumer: close m
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Put a handle only after every consumer has opened it. Use an acknowledgement or a barrier.

use urscope_schema::handle::Kind;

use super::wording::{call, which};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Expiry, Fact, FactKind, Outcome, What};

pub(super) static RULE: Rule = Rule {
    code: "use-after-put",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened after its put",
    sentence: "opened handle data after its put",
    facts: &[FactKind::OpenedExpired],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedExpired(expired, outcome) = fact.what else { return None };
    let Expiry::Put(put) = expired.reason else { return None };
    let what = expired.handle;
    let (which, most) = match (outcome, what.kind) {
        (Outcome::Refused(_), _) => (which(fact.at, outcome), Severity::Error),
        (Outcome::Succeeded, Kind::EventHandle) => {
            ("which succeeded because the event still lives".into(), Severity::Note)
        }
        (Outcome::Succeeded, _) => (which(fact.at, outcome), Severity::Warning),
    };
    let who = fact.actor();
    let at = call(fact.at);
    let ended = fact.place(put);
    let message =
        format!("{who} opens {what} in {at}, {which}: it was exported in {} and put in {ended}", call(expired.got));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(put));
    Some(
        finding
            .values(expired.size, Some(expired.fingerprint))
            .at_most(most)
            .advice("put a handle only after every consumer has opened it; use an acknowledgement or a barrier"),
    )
}
