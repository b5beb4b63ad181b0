//! # What it does
//!
//! Reports handle data that is put although it has already been put.
//!
//! # Why it is bad
//!
//! A put frees the buffer that the get returned. The second put frees it again. This corrupts the heap, or frees a
//! buffer that a later get received at the same address. The adapters return success.
//!
//! # Example
//!
//! The exporter, where a handle was copied:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! ipc::handle copy = handle;
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! // Wrong: both have the same handle data.
//! ipc::memory::put(copy, ctx);
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
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! Two gets of the same memory return two handles, and each of them is put. An address may be used again.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p -> h2
//! producer: put h
//! producer: put h2
//! producer: get p -> h
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Let one owner put each handle, once, with exactly the pointer that its get returned.

use urscope_schema::api::ResultCode;

use super::wording::{call, name};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::Violation;
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "double-put",
    severity: Severity::Error,
    when: When::Enter,
    title: "handle data is put although it has already been put",
    sentence: "put the same handle data twice",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    if ending.object.kind.shares().is_none() || ending.violation(ending.object.kind) != Some(Violation::Again) {
        return None;
    }
    let (born, died, size, fingerprint) = match ending.target {
        Target::Ended(tombstone) if tombstone.excused => return None,
        Target::Ended(tombstone) => (tombstone.born, Some(tombstone.died), tombstone.size, tombstone.fingerprint),
        // The first put is still under way.
        Target::Handle(got) => (got.born, None, got.size, got.fingerprint),
        _ => return None,
    };
    let before =
        died.map_or_else(|| "another call is putting it".into(), |died| format!("was put in {}", fact.place(died)));
    let who = fact.actor();
    let what = ending.object;
    let is_own = born.process == fact.at.process;
    let of = if is_own { String::new() } else { format!(" of {}", name(fact.tracker, born.process)) };
    let at = call(fact.at);
    let born_in = call(born);
    let message = format!("{who} puts {what} again in {at}: it was exported in {born_in}{of} and {before}");
    let finding = Finding::new(&RULE, fact.at, what, message).other(died.or(Some(born))).values(size, fingerprint);
    Some(
        finding
            .advice("let one owner put each handle, once; remove one of the two puts")
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}
