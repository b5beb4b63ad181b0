//! # What it does
//!
//! Reports physical memory that a process opened from handle data and still holds references to when the process ends
//! or when the context of the memory is released.
//!
//! Level Zero and CUDA: a note, unless they grow until the process ends (as with `leaked-mapping`). Libraries keep what
//! they have opened in a cache until their process ends.
//!
//! # Why it is bad
//!
//! Open physical memory keeps the memory of the other process alive, and a descriptor in this process. Both are freed
//! when the process ends; a long-running process leaks them.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto data = receive();
//! auto *mem = new physical_mem(
//!     physical::open(data, ctx, dev));
//! // Wrong: the object is never destroyed.
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto data = receive();
//! auto mem = physical::open(data, ctx, dev);
//! // The end of its scope closes it.
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! producer: put-physical h
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! `urPhysicalMemRelease` ends it as well as `urIPCClosePhysMemHandleExp`.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! consumer: context c
//! consumer: open-physical h -> n in c
//! consumer: open-physical h -> n2 in c
//! consumer: close-physical n
//! consumer: release-physical n2
//! consumer: release c
//! producer: put-physical h
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Close it once for the open, and release it once for each retain, before its context; in SYCL, let the object be
//! destroyed.

use urscope_schema::{api::Promise, handle::Kind};

use super::{
    Check, Rule, When,
    memory::{grows, one_of},
    wording::left_object,
};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "leaked-physical-memory",
    severity: Severity::Warning,
    when: When::End,
    title: "physical memory is opened and never closed",
    sentence: "opened {what} and never closed it",
    facts: &[FactKind::LeftObject],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::LeftObject(left, handle, object) = fact.what else { return None };
    if handle.kind != Kind::PhysicalMem {
        return None;
    }
    let advice = object.born.words().end_physical_memory;
    one_of(left, || left_object(&RULE, fact, handle, object, left).advice(advice))
        .map(|finding| finding.note_unless(grows(left, fact.at.time), Promise::OpensMayStay))
}
