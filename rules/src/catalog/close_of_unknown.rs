//! # What it does
//!
//! Reports the close of a pointer that no open of this process returned, and the close of physical memory that this
//! process made itself.
//!
//! # Why it is bad
//!
//! The intended mapping stays open, and with it the memory of the other process. The adapters return
//! `UR_RESULT_ERROR_INVALID_ARGUMENT`, which SYCL turns into an exception in the middle of a clean-up. They release a
//! process's own physical memory as if `urPhysicalMemRelease` had been called; that case is a warning.
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
//! ipc::memory::put(handle, ctx);
//! // Wrong: p is allocated, not opened.
//! ipc::memory::close(p, ctx);
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
//! producer: close p fails
//! producer: put h
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
//! Close exactly the pointer that the open returned, in the process that opened it. The exporter does not close its own
//! pointer, it frees it; it releases its own physical memory.

use urscope_schema::api::ResultCode;
use urscope_schema::handle::{Handle, Kind};

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::{State, Violation};
use crate::tracker::fact::{Fact, FactKind, Target, What};
use crate::tracker::records::Object;

pub(super) static RULE: Rule = Rule {
    code: "close-of-unknown",
    severity: Severity::Error,
    when: When::Enter,
    title: "a pointer or physical memory is closed that this process never opened",
    sentence: "closed {what} that it had never opened",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    if let Target::Object(own) = ending.target
        && own.state == State::Alive
    {
        return Some(own_memory(fact, ending.object, own));
    }
    if ending.violation(Kind::Mapping) != Some(Violation::NeverLived) {
        return None;
    }
    let (what_it_is, other, size) = match ending.target {
        Target::Allocation(own) => {
            let born = own.born.map_or_else(String::new, |born| format!(", allocated in {}", call(born)));
            (format!("it is USM{} of this process{born}", of_size(own.requested.size)), own.born, own.requested.size)
        }
        Target::Nothing => ("no open of this process returned it".into(), None, None),
        _ => return None,
    };
    let who = fact.actor();
    let what = ending.object;
    let message = format!("{who} closes {:#x} in {}, which is not a mapping: {what_it_is}", what.value, call(fact.at));
    let finding = Finding::new(&RULE, fact.at, what, message).other(other).values(size, None);
    Some(
        finding
            .advice("close exactly the pointer that the open returned, in the process that opened it")
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}

/// An object that this process made has a release function of its own; the adapters accept a close instead.
fn own_memory(fact: &Fact<'_>, what: Handle, own: &Object) -> Finding {
    let who = fact.actor();
    let size = of_size(own.size);
    let born = call(own.born);
    let message =
        format!("{who} closes {what}{size} in {}; the process made it in {born} and did not open it", call(fact.at));
    let advice = match what.kind {
        Kind::Event => "destroy what this process made with zeEventDestroy; close only what it opened",
        Kind::EventPool => "destroy what this process made with zeEventPoolDestroy; close only what it opened",
        _ => "release what this process made with urPhysicalMemRelease; close only what it opened",
    };
    Finding::new(&RULE, fact.at, what, message)
        .other(Some(own.born))
        .values(own.size, None)
        .at_most(Severity::Warning)
        .advice(advice)
        .answer(ResultCode::INVALID_ARGUMENT)
}
