//! # What it does
//!
//! Reports physical memory that is released, or closed, when no reference to it is left.
//!
//! # Why it is bad
//!
//! The object is destroyed with its last reference. On today's adapters the next release reads and frees memory that no
//! longer belongs to the object. (Commands also hold references to events, so the rule does not apply to events.)
//!
//! # Example
//!
//! SYCL counts references itself. A program that calls Unified Runtime can release one too many:
//!
//! ```cpp
//! ur_physical_mem_handle_t mem = nullptr;
//! urPhysicalMemCreate(
//!     ur_ctx, ur_dev, size, &shared, &mem);
//! urPhysicalMemRelease(mem);
//! // Wrong: the only reference is released.
//! urPhysicalMemRelease(mem);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! ur_physical_mem_handle_t mem = nullptr;
//! urPhysicalMemCreate(
//!     ur_ctx, ur_dev, size, &shared, &mem);
//! urPhysicalMemRelease(mem);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUmemGenericAllocationHandle memory;
//! cuMemImportFromShareableHandle(
//!     &memory, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
//! cuMemRelease(memory);
//! // Wrong: it was imported once.
//! cuMemRelease(memory);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-physical h
//! producer: release-physical m
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! Each retain needs one more release. What was opened may be closed or released.
//!
//! ```text
//! producer: physical m ipc
//! producer: retain-physical m
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: close-physical n
//! producer: put-physical h
//! producer: release-physical m
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Let one owner release each reference, once.

use urscope_schema::{api::ResultCode, handle::Kind};

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::lifecycle::Violation;
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "double-release",
    severity: Severity::Error,
    when: When::Enter,
    title: "physical memory is released or closed more often than it was made, opened and retained",
    sentence: "released {what} more often than it held it",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    if ![Kind::PhysicalMem, Kind::Event, Kind::EventPool]
        .iter()
        .any(|kind| ending.violation(*kind) == Some(Violation::Again))
    {
        return None;
    }
    let (born, died) = match ending.target {
        Target::Ended(tombstone) if tombstone.excused => return None,
        Target::Ended(tombstone) => (tombstone.born, Some(tombstone.died)),
        // Its last release is still under way.
        Target::Object(object) => (object.born, None),
        _ => return None,
    };
    let before = died.map_or_else(
        || "another call is releasing its last reference".into(),
        |died| format!("its last reference was released in {}", fact.place(died)),
    );
    let who = fact.actor();
    let what = ending.object;
    let message =
        format!("{who} releases {what} again in {}: it was made in {} and {before}", call(fact.at), fact.place(born));
    let finding = Finding::new(&RULE, fact.at, what, message).other(died.or(Some(born)));
    Some(
        finding
            .advice("let one owner release each reference, once; remove one of the releases")
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}
