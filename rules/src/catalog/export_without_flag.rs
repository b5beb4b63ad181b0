//! # What it does
//!
//! Reports a get of physical memory or of an event that was made without the flag for sharing.
//!
//! # Why it is bad
//!
//! The driver makes a shareable object in a different way, so the flag cannot be added later. The header demands
//! UR_RESULT_ERROR_INVALID_ARGUMENT for physical memory and UR_RESULT_ERROR_INVALID_EVENT for an event.
//!
//! # Example
//!
//! The exporter of physical memory:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! physical_mem mem(dev, ctx, size);
//! // Wrong: it is made without enable_ipc.
//! auto handle = physical::get(mem);
//! send(handle.data());
//! barrier();
//! physical::put(handle, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! properties shared{enable_ipc{true}};
//! physical_mem mem(dev, ctx, size, shared);
//! auto handle = physical::get(mem);
//! send(handle.data());
//! barrier();
//! physical::put(handle, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m
//! producer: get-physical m -> h fails
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: get-physical n -> h2
//! another: open-physical h2 -> o
//! another: close-physical o
//! consumer: put-physical h2
//! consumer: close-physical n
//! producer: put-physical h
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Make the object with `UR_PHYSICAL_MEM_FLAG_ENABLE_IPC` or `UR_EXP_EVENT_FLAG_IPC_EXP`; in SYCL, with the property
//! `enable_ipc`.

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Exporting, Fact, FactKind, Source, What};
use crate::tracker::records::Origin;

pub(super) static RULE: Rule = Rule {
    code: "export-without-flag",
    severity: Severity::Error,
    when: When::Enter,
    title: "a get of physical memory or an event that was made without the IPC flag",
    sentence: "got handle data for {what} that was made without the IPC flag",
    facts: &[FactKind::Exporting],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Exporting(Exporting { source: Source::Object(what, object), .. }) = fact.what else { return None };
    if object.origin != Origin::Plain {
        return None;
    }
    let how = fact.at.function?.interface().shareable(what.kind)?;
    let who = fact.actor();
    let at = call(fact.at);
    let born = call(object.born);
    let message = format!("{who} gets handle data in {at} for {what}, which it made without the IPC flag in {born}");
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(object.born));
    let advice = format!("make it with {}{}", how.name, fact.at.words().or_shareable);
    Some(finding.advice(advice).answer(how.refused))
}
