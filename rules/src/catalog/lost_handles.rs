//! # What it does
//!
//! Reports calls that have got hundreds of handles of many allocations, each a few, that are still not
//! put when the process ends, although the memory is freed. Gets from one place in the program count
//! together. (Hundreds of handles of one allocation are [`unreturned-gets`](#unreturned-gets).)
//!
//! # Why it is bad
//!
//! The runtime allocates a new buffer for each get (about 120 bytes in release 2026.2) and frees it with its put only,
//! not with the memory. A program that gets once for each buffer that it shares, and puts nothing, grows without a
//! bound. SYCL allows a program to free memory without a put, so this is a note until about 8,000 handles, a megabyte
//! of such buffers, are lost. A few handles are no more than [`freed-while-exported`](#freed-while-exported). (A Level
//! Zero driver gives a handle back with its memory, so `zeMemGetIpcHandle` is left out.)
//!
//! # Example
//!
//! The exporter of many buffers:
//!
//! ```cpp
//! for (int i = 0; i < 1000; i++) {
//!   auto *buffer =
//!       sycl::malloc_device(size, dev, ctx);
//!   // Wrong: the handle is never put.
//!   send(ipc::memory::get(buffer, ctx).data());
//!   barrier();
//!   sycl::free(buffer, ctx);
//! }
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! for (int i = 0; i < 1000; i++) {
//!   auto *buffer =
//!       sycl::malloc_device(size, dev, ctx);
//!   auto handle = ipc::memory::get(buffer, ctx);
//!   send(handle.data());
//!   barrier();
//!   ipc::memory::put(handle, ctx);
//!   sycl::free(buffer, ctx);
//! }
//! ```
//!
//! # Bad trace
//!
//! ```text
//! 300 times
//! producer: alloc p$ 4096
//! producer: get p$ -> h$
//! producer: free p$
//! end
//! producer: exit
//! ```
//!
//! # Good trace
//!
//! ```text
//! 300 times
//! producer: alloc p$ 4096
//! producer: get p$ -> h$
//! producer: put h$
//! producer: free p$
//! end
//! producer: exit
//! ```
//!
//! # What to do
//!
//! Put each handle once its bytes are sent and opened, before the free of its memory.

use std::num::NonZeroU64;

use urscope_schema::api::Promise;
use urscope_schema::{api::Function, handle::Kind, size};

use super::wording::{call, rate};
use super::{
    Check, Rule, When,
    memory::{MANY_HANDLES, not_put},
};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::Map;
use crate::tracker::fact::{Fact, FactKind, What};
use crate::tracker::records::{HandleData, Serial};

pub(super) static RULE: Rule = Rule {
    code: "lost-handles",
    severity: Severity::Note,
    when: When::End,
    title: "hundreds of handles are never put and outlive their memory",
    sentence: "got hundreds of handles that outlived their memory",
    facts: &[FactKind::ProcessEnded],
    check: Check::Each(check),
};

/// The buffer that the runtime keeps for each handle until its put, in bytes, as measured with release 2026.2.
const BUFFER_SIZE: u64 = 120;

/// The number of handles from which on their buffers, about 1 MB, are growth.
const GROWTH: u64 = 8192;

/// Handles of one place in the program.
struct Lost<'t> {
    first: &'t HandleData,
    last: &'t HandleData,
    count: u64,
}

fn check(fact: &Fact<'_>, found: &mut Vec<Finding>) {
    let What::ProcessEnded(end) = fact.what else { return };
    let Some(most) = not_put(end) else { return };
    let Some(state) = fact.tracker.state(fact.at.process) else { return };
    let is_lost = |kind: Kind, data: &HandleData| {
        let must_be_put = !data.born.promises(Promise::PutIsOptional);
        kind == Kind::MemHandle && data.state == State::Alive && must_be_put && !data.ended_wrongly
    };
    let mut lost: Vec<(Serial, &HandleData)> = Vec::new();
    for (handle, data) in state.handles.iter().filter(|(handle, data)| is_lost(handle.kind, data)) {
        lost.extend(data.exported.filter(|_| !state.must_put(*handle, data)).map(|memory| (memory, data)));
    }
    if (lost.len() as u64) < MANY_HANDLES {
        return;
    }
    let mut of_memory: Map<Serial, u64> = Map::default();
    for (memory, _) in &lost {
        *of_memory.entry(*memory).or_default() += 1;
    }
    // `unreturned-gets` reports these.
    lost.retain(|(memory, _)| of_memory.get(memory).is_none_or(|count| *count < MANY_HANDLES));
    lost.sort_unstable_by_key(|(_, data)| data.serial);
    let mut sites: Map<(Option<Function>, Option<NonZeroU64>), Lost<'_>> = Map::default();
    for (_, data) in lost {
        let born = data.born;
        let site = (born.function, born.stack);
        let of_site = sites.entry(site).or_insert(Lost { first: data, last: data, count: 0 });
        of_site.last = data;
        of_site.count += 1;
    }
    let mut sites: Vec<_> = sites.into_values().filter(|site| site.count >= MANY_HANDLES).collect();
    sites.sort_unstable_by_key(|site| site.first.serial);
    found.extend(sites.iter().map(|site| report(fact, site).at_most(most)));
}

fn report(fact: &Fact<'_>, lost: &Lost<'_>) -> Finding {
    let Lost { count, .. } = *lost;
    let first = lost.first.born;
    let last = lost.last.born;
    let message = format!(
        "{} got {count} handles from {} to {}{}, never put them, and freed their memory; each keeps a buffer of \
         about {BUFFER_SIZE} bytes until its put, {} in all",
        fact.actor(),
        call(first),
        call(last),
        rate(count - 1, first.time, last.time),
        size(count * BUFFER_SIZE),
    );
    let severity = if count < GROWTH { RULE.severity } else { Severity::Warning };
    let finding = Finding { severity, ..Finding::of_call(&RULE, last, message).other(Some(first)) };
    finding.advice("put each handle once its bytes are sent and opened, before the free of its memory")
}
