//! # What it does
//!
//! Reports handle data that was got but neither put nor ended by freeing its memory before its process exited or its
//! context was released.
//!
//! Level Zero and CUDA: nothing is reported. A put is optional there, or there is none; the driver takes the handle
//! back with its memory or its process.
//!
//! # Why it is bad
//!
//! Each get allocates a new buffer and keeps the exported memory alive in the driver. On some drivers it also takes a
//! file descriptor, and a long-running program runs out of them.
//!
//! # Example
//!
//! The exporter, when the other process is done:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! // Wrong: neither put nor freed.
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
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: exit
//! ```
//!
//! # Good trace
//!
//! A get that failed returned nothing. (Handle data of an event is at most a note: SYCL calls that put optional.)
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p -> h2 fails
//! producer: put h
//! producer: physical m ipc
//! producer: get-physical m -> h3
//! producer: put-physical h3
//! producer: release-physical m
//! producer: exit
//! ```
//!
//! # What to do
//!
//! Put each handle when no process will open it any more, in the process that got it, before its context is released.
//! If the process was killed, or its trace is incomplete, this is only a note.

use urscope_schema::{api::Promise, handle::Kind};

use super::wording::{among, call, handle, left, of_size};
use super::{Check, Rule, When, memory::stands_for};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "leaked-handle",
    severity: Severity::Warning,
    when: When::End,
    title: "handle data is got and never put",
    sentence: "got handle data for {what} and never put it",
    facts: &[FactKind::LeftHandle],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::LeftHandle(how, what, data) = fact.what else { return None };
    let count = stands_for(how)?;
    let of = match (what.kind, data.pointer) {
        (Kind::MemHandle, Some(pointer)) => format!(" for USM {pointer:#x}"),
        (kind, Some(value)) => kind.shares().map_or_else(String::new, |kind| format!(" for {}", handle(kind, value))),
        (_, None) => String::new(),
    };
    let who = fact.actor();
    let size = of_size(data.size);
    let (end, most) = left(how);
    // SYCL keeps the handle data of an event with the event, and calls its put optional.
    let most = if what.kind == Kind::EventHandle { Severity::Note } else { most };
    let among = among(how, count, data.born, false);
    let message = format!("{who} got {what}{of}{size} in {} and never put it; {end}{among}", call(data.born));
    let finding = Finding::new(&RULE, data.born, what, message).values(data.size, data.fingerprint).at_most(most);
    let advice = match what.kind {
        Kind::MemHandle => "put it when no process will open it any more, or free its memory, which ends its handles",
        _ => "put it when no process will open it any more",
    };
    Finding { count, ..finding.advice(advice) }.unless(Promise::PutIsOptional)
}
