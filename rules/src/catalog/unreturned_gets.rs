//! # What it does
//!
//! Reports handle data that is got again and again for one allocation, physical memory or event and not
//! put, so that hundreds of handles of it are outstanding.
//!
//! # Why it is bad
//!
//! The runtime allocates a new buffer for each get (about 120 bytes in release 2026.2) and frees it with its put only,
//! not with the memory. A program that gets for every message grows without a bound. One put that is forgotten before a
//! free is no more than [`freed-while-exported`](#freed-while-exported); hundreds of them, of many allocations, are
//! [`lost-handles`](#lost-handles).
//!
//! # Example
//!
//! The exporter, in the main loop of a program:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! for (int step = 0; step < 1000; step++) {
//!   // Wrong: each of them has to be put.
//!   auto handle = ipc::memory::get(p, ctx);
//!   send(handle.data());
//!   barrier();
//! }
//! sycl::free(p, ctx);
//! ```
//!
//! Mended:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! for (int step = 0; step < 1000; step++) {
//!   send(handle.data());
//!   barrier();
//! }
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! 300 times
//! producer: get p -> h$
//! end
//! 300 times
//! producer: put h$
//! end
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! 8 times
//! producer: get p -> h
//! producer: put h
//! end
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Get once, keep the handle data while the memory lives, and send copies of its bytes; or put each
//! handle once its bytes are sent and opened.

use urscope_schema::handle::Kind;

use super::wording::{call, of_size, rate};
use super::{Check, Rule, When, memory::MANY_HANDLES};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "unreturned-gets",
    severity: Severity::Warning,
    when: When::Exit,
    title: "hundreds of handles of one allocation are got and not put",
    sentence: "got hundreds of handles of one allocation and did not put them",
    facts: &[FactKind::Exported],
    check: Check::Stateless(check),
};

/// The get that makes it so many is reported. Gets of one allocation count together, because they may
/// return different bytes.
fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Exported(exported) = fact.what else { return None };
    let state = fact.tracker.state(fact.at.process)?;
    let memory = state.memory_of(exported.data);
    // Most gets end here.
    if memory.is_some_and(|memory| memory.handles != MANY_HANDLES) {
        return None;
    }
    let export = fact.tracker.exports.get(exported.data.export?)?;
    let is_memory = exported.handle.kind == Kind::MemHandle;
    let memory = memory.or_else(|| {
        let pointer = exported.data.pointer.filter(|_| is_memory)?;
        state.allocation_at(pointer).map(|(_, memory)| memory)
    });
    let handles = memory.map_or(export.handles, |memory| memory.handles);
    // SYCL keeps the handle data of an event with the event, and calls its put optional.
    if handles != MANY_HANDLES || exported.handle.kind == Kind::EventHandle || exported.data.is_descriptor() {
        return None;
    }
    let mut exports = memory.into_iter().flat_map(|memory| &memory.exports);
    let oldest = exports.find_map(|id| fact.tracker.exports.get(*id));
    let first = oldest.unwrap_or(export).first_get;
    let rate = rate(MANY_HANDLES - 1, first.time, fact.at.time);
    let (who, size, at) = (fact.actor(), of_size(exported.data.size), call(fact.at));
    let of = exported.handle.kind.shares().map_or("object", Kind::noun);
    let value = exported.data.pointer.map_or_else(String::new, |value| format!(" {value:#x}"));
    let message = format!(
        "{who} has {MANY_HANDLES} handles of the {of}{value}{size} that are not put, the last of them got in {at}, the first in {}{rate}; each \
         keeps a buffer until its put",
        call(first)
    );
    let finding = Finding::new(&RULE, fact.at, exported.handle, message).other(Some(first));
    Some(
        finding
            .values(exported.data.size, exported.data.fingerprint)
            .advice("get once and send copies of the bytes, or put each handle once its bytes have been opened"),
    )
}
