//! # What it does
//!
//! Reports a copy, fill or prefetch that begins inside a mapping, inside exported memory or inside mapped physical
//! memory that is shared, and ends outside of it, and a get of the address just behind an allocation, at which no other
//! one begins.
//!
//! # Why it is bad
//!
//! What lies behind the memory belongs to somebody else: other memory of the exporter in the same block, or nothing at
//! all. The command overwrites it, reads it, or ends the process. The get is refused, or whoever opens its handle data
//! has other memory of the exporter.
//!
//! Kernels are not checked, because their record does not say how many bytes they access, and neither are copies of
//! regions. In the process that opens, the size of the memory is known if the exporter was traced.
//!
//! # Example
//!
//! The process that opened 1,000 bytes:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! // Wrong: the size of another buffer.
//! queue.memset(p, 0, 2000).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, 1000).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 1000
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 2000
//! consumer: host-waits
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 1000
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 1000
//! consumer: host-waits
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Send the size of the memory with its handle data, and access no more than that.

use urscope_schema::{handle::Kind, size};

use super::wording::{call, handle, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Exporting, Fact, FactKind, PastEnd, Source, What};
use crate::tracker::records::Allocation;

pub(super) static RULE: Rule = Rule {
    code: "out-of-bounds",
    severity: Severity::Error,
    when: When::Enter,
    title: "a command or a get goes past the end of memory",
    sentence: "went past the end of {what}",
    facts: &[FactKind::PastEnd, FactKind::Exporting],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    match fact.what {
        What::PastEnd(past) => Some(command(fact, past)),
        What::Exporting(Exporting { source: Source::EndOf(base, memory), .. }) => Some(get(fact, base, memory)),
        _ => None,
    }
}

fn command(fact: &Fact<'_>, past: &PastEnd) -> Finding {
    let does = if past.writes { "writes" } else { "reads" };
    let length = size(past.length);
    let from = if past.offset == 0 { String::new() } else { format!(" from byte {} on", past.offset) };
    let who = fact.actor();
    let at = call(fact.at);
    let known = size(past.size);
    let message = format!("{who} {does} {length} of {}{from} in {at}, which has {known}", past.memory);
    let finding = Finding::new(&RULE, fact.at, past.memory, message).other(past.born);
    let finding = finding.values(Some(past.size), past.fingerprint);
    finding.advice("send the size of the memory with its handle data, and access no more than that")
}

fn get(fact: &Fact<'_>, base: u64, memory: &Allocation) -> Finding {
    let what = handle(Kind::Usm, base);
    let who = fact.actor();
    let at = call(fact.at);
    let size = memory.requested.size;
    let end = base + size.unwrap_or(0);
    let from = memory.born.map_or_else(String::new, call);
    let message =
        format!("{who} gets handle data for {end:#x} in {at}, where {what}{} ends, allocated in {from}", of_size(size));
    let finding = Finding::new(&RULE, fact.at, what, message).other(memory.born).values(size, None);
    finding.advice("get handle data for an address inside the memory: the index or the offset is too large")
}
