//! # What it does
//!
//! Reports memory that is freed before its handles are put, while no process has it open. The same applies to physical
//! memory and events when their last reference is released.
//!
//! Level Zero and CUDA: nothing is reported. A put is optional there, or there is none; the driver takes the handle
//! back with its memory.
//!
//! # Why it is bad
//!
//! It is allowed: SYCL permits it, and the free also ends the handles of the memory. But from then on the bytes of a
//! handle are invalid, and nothing stops a consumer that still has them from opening them. Handles of physical memory
//! and of events do not end with their object: they must still be put.
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
//! // Noted: the handle data is not put yet.
//! sycl::free(p, ctx);
//! ipc::memory::put(handle, ctx);
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
//! Nothing has to be done. To show in the program where the sharing ends, put the handle before the free.

use urscope_schema::{api::Promise, counted, handle::Kind};

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-exported",
    severity: Severity::Note,
    when: When::Exit,
    title: "memory, physical memory or an event is freed before its handles are put, which is allowed",
    sentence: "freed {what} before its handles were put",
    facts: &[FactKind::Freed],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Freed(freed) = fact.what else { return None };
    let got = freed.got.filter(|_| freed.handles > 0 && freed.holders.is_empty())?;
    let what = freed.what;
    let who = fact.actor();
    let size = of_size(freed.size);
    let at = call(fact.at);
    let handles = counted(freed.handles, "handle");
    let (frees, advice) = match what.kind {
        Kind::Usm => ("frees", "it is allowed; put before the free to show where the sharing ends"),
        _ => (
            "releases",
            "it is allowed, but the put is still required; put before the last release to show where the sharing ends",
        ),
    };
    let message = format!(
        "{who} {frees} {what}{size} in {at} before {handles} of it had been put, the last of them got in {}",
        call(got)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(got));
    finding.values(freed.size, freed.fingerprint).advice(advice).unless(Promise::PutIsOptional)
}
