//! # What it does
//!
//! Reports handle data that is opened, in this process or another one, after its memory was freed. If the addresses
//! have been allocated again, it is a [`stale-handle`](#stale-handle).
//!
//! # Why it is bad
//!
//! The free ended every handle of the memory. If the memory returned to the driver, the open is refused. If it came
//! from the adapter's pool, the open succeeds and maps memory that nobody owns.
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
//! sycl::free(p, ctx);
//! // Wrong: nothing is left to be opened.
//! send(data);
//! ```
//!
//! Mended:
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
//! producer: alloc p 16777216
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! consumer: open h -> m fails
//! ```
//!
//! # Good trace
//!
//! A free that is refused frees nothing.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: free p fails
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Free when every process has closed what it opened: wait for a message back, or a barrier.

use urscope_schema::handle::Kind;

use super::wording::{call, expired};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Expiry, Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "use-after-free",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened after its memory was freed",
    sentence: "opened handle data after its memory was freed",
    facts: &[FactKind::OpenedExpired],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedExpired(old, outcome) = fact.what else { return None };
    let Expiry::Freed(freed) = old.reason else { return None };
    let (got, freed_in) = (call(old.got), fact.place(freed));
    let why = match old.handle.kind {
        Kind::EventHandle => format!("it was got in {got}, and its event was destroyed in {freed_in}"),
        Kind::EventPoolHandle => format!("it was got in {got}, and its event pool was destroyed in {freed_in}"),
        _ => format!("its memory was exported in {got} and freed in {freed_in}"),
    };
    let finding = expired(&RULE, fact, old, outcome, &why).other(Some(freed));
    if matches!(old.handle.kind, Kind::EventHandle | Kind::EventPoolHandle) {
        return Some(finding.advice("destroy it when every process has opened it, or later"));
    }
    Some(finding.advice("free when every process has closed what it opened: wait for a message back, or a barrier"))
}
