//! # What it does
//!
//! Reports a mapping that is still open when its process exits or the last reference to its context is released; in
//! CUDA also imported physical memory that was released and is still mapped then.
//!
//! Level Zero and CUDA: a note, unless they grow until the process ends: more than 256 from one place in the program,
//! or 1 GiB in at least 16 that were opened over ten seconds or longer. Libraries keep what they have opened in a cache
//! until their process ends.
//!
//! # Why it is bad
//!
//! An open mapping keeps the memory of the producer allocated, even after the producer freed it or ended. Device memory
//! is scarce, and no tool shows who holds it. Some drivers keep a file descriptor for each mapping.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! // Wrong: it is never closed.
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! receive(handle);
//! cuIpcOpenMemHandle(&p, handle,
//!                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
//! cuMemsetD8(p, 0, size);
//! // Noted: cuIpcCloseMemHandle(p) is missing.
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: exit
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A pointer that is opened twice is closed twice.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: open h -> m
//! consumer: close m
//! consumer: close m
//! consumer: exit
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Close each open once, before its context is released. If the process was killed, or its trace is incomplete, this is
//! only a note.

use urscope_schema::{api::Promise, handle::Kind};

use super::wording::{among, call, handle, left, of_size, times};
use super::{
    Check, Rule, When,
    memory::{grows, stands_for},
};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Leftover, What};
use crate::tracker::records::MappedRange;

pub(super) static RULE: Rule = Rule {
    code: "leaked-mapping",
    severity: Severity::Warning,
    when: When::End,
    title: "a mapping is opened and never closed",
    sentence: "opened {what} and never closed it",
    facts: &[FactKind::LeftMapping, FactKind::LeftRange],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if let What::LeftRange(how, start, range) = fact.what {
        return still_mapped(fact, how, start, range);
    }
    let What::LeftMapping(how, pointer, mapping) = fact.what else { return None };
    let count = stands_for(how)?;
    let opened = mapping.first_open()?;
    let what = handle(Kind::Mapping, pointer);
    let from = mapping
        .source()
        .map_or_else(String::new, |source| format!("; its handle data came from {}", fact.place(source)));
    let closed = match (mapping.opened, mapping.closed, mapping.close_refused) {
        (1, _, None) => "never closed it".into(),
        (1, _, Some(refused)) => format!("did not close it, because {} was refused", call(refused)),
        (all, closed, _) => format!("opened it {} and closed it {}", times(all), times(closed)),
    };
    let who = fact.actor();
    let size = of_size(mapping.size);
    let (end, most) = left(how);
    let grows = grows(how, fact.at.time);
    let among = among(how, count, opened, grows);
    let gets = mapping.export.and_then(|export| fact.tracker.exports.get(export)).map_or(0, |export| export.gets);
    // An allocator shares parts of its blocks.
    let users = if gets > 1 && opened.promises(Promise::HandlesNameAllocations) {
        format!(", which names the whole allocation and was got {}, perhaps for several parts of it", times(gets))
    } else {
        String::new()
    };
    let message = format!("{who} opened {what}{size} in {} and {closed}; {end}{from}{users}{among}", call(opened));
    let finding = Finding::new(&RULE, opened, what, message).other(mapping.source());
    let finding = finding.values(mapping.size, mapping.fingerprint).at_most(most);
    let finding = finding.advice("close each open once, before its context is released");
    Some(Finding { count, ..finding }.note_unless(grows, Promise::OpensMayStay))
}

/// Imported physical memory that was released, and never unmapped: it stays until it is.
fn still_mapped(fact: &Fact<'_>, how: Leftover, start: u64, range: &MappedRange) -> Option<Finding> {
    let count = stands_for(how)?;
    let length = range.end - start;
    let mapped = range.place;
    let (end, most) = left(how);
    let grows = grows(how, fact.at.time);
    let message = format!(
        "{} mapped imported {}{} at {start:#x} in {}, released it and never unmapped it; {end}{}",
        fact.actor(),
        range.memory,
        of_size(Some(length)),
        call(mapped),
        among(how, count, mapped, grows),
    );
    let finding = Finding::new(&RULE, mapped, handle(Kind::Mapping, start), message).values(Some(length), None);
    let finding = finding.at_most(most).advice("unmap what was mapped: mapped memory stays, although it is released");
    Some(Finding { count, ..finding }.note_unless(grows, Promise::OpensMayStay))
}
