//! # What it does
//!
//! Reports a copy, fill, prefetch or kernel that is given memory opened through Level Zero, after the
//! exporter has freed that memory, and has exported other memory at the same address.
//!
//! Physical memory that is opened and mapped: a note if it was accessed before and is accessed again after its owner
//! has unmapped it and has mapped other memory at the same address. An owner does that which gives its memory away and
//! later makes it anew, as an engine that sleeps and wakes up. It may also have handed the old memory over, so it is a
//! note.
//!
//! # Why it is bad
//!
//! A Level Zero driver keeps the old memory as long as it is open, so the command succeeds: it reads
//! old data, or writes what nobody will read. This is what happens if a library keeps its mappings by
//! the address of the memory, and is not told that the memory was freed. (Where memory is shared
//! through Unified Runtime, the free is a [`freed-while-open`](#freed-while-open), and the command a
//! [`use-after-free`](#use-after-free).)
//!
//! # Example
//!
//! A consumer that keeps mappings by address:
//!
//! ```cpp
//! std::map<void *, void *> opened;
//! for (auto [address, data] : messages()) {
//!   // Wrong: the address may be used again.
//!   void *&m = opened[address];
//!   if (!m) m = ze_open(data);
//!   queue.memcpy(p, m, size).wait();
//! }
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! for (auto [address, data] : messages()) {
//!   void *m = ze_open(data);
//!   queue.memcpy(p, m, size).wait();
//!   zeMemCloseIpcHandle(ze_ctx, m);
//! }
//! ```
//!
//! With the CUDA driver, the exporter:
//!
//! ```cpp
//! CUmemGenericAllocationHandle memory;
//! // The engine sleeps.
//! cuMemUnmap(buffer, size);
//! // It wakes up. The others still read the old memory.
//! cuMemCreate(&memory, size, &wanted, 0);
//! // Noted: it is not sent to them.
//! cuMemMap(buffer, size, 0, memory, 0);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096 ze
//! producer: get p -> h ze
//! consumer: open h -> m ze
//! producer: free p ze
//! producer: alloc p 4096 ze
//! producer: get p -> h2 ze
//! consumer: copy m sized 64 ze
//! consumer: host-waits
//! consumer: close m ze
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096 ze
//! producer: get p -> h ze
//! consumer: open h -> m ze
//! consumer: copy m sized 64 ze
//! consumer: host-waits
//! consumer: close m ze
//! producer: free p ze
//! producer: alloc p 4096 ze
//! producer: get p -> h2 ze
//! consumer: open h2 -> n ze
//! consumer: copy n sized 64 ze
//! consumer: host-waits
//! consumer: close n ze
//! ```
//!
//! # What to do
//!
//! Keep what is opened by the allocation, not by its address: by the id that `zeMemGetAllocProperties`
//! returns in the exporter, or by the file behind the descriptor of the handle. Let the exporter send a
//! message when it frees, and close then. Let one that makes its physical memory anew send it again.

use urscope_schema::api::Promise;

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, OutdatedUse, What};

pub(super) static RULE: Rule = Rule {
    code: "stale-mapping",
    severity: Severity::Warning,
    when: When::Enter,
    title: "a command accesses opened memory that was freed and whose address has other memory since",
    sentence: "used {what} that {other} had freed and replaced",
    facts: &[FactKind::StaleUse, FactKind::OutdatedUse],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if let What::OutdatedUse(outdated) = fact.what {
        return Some(of_physical(fact, outdated));
    }
    let What::StaleUse(stale) = fact.what else { return None };
    // Otherwise it is a use after the free.
    let (address, got) = stale.anew.filter(|_| stale.opened.promises(Promise::MemoryOutlivesFree))?;
    let who = fact.actor();
    let size = of_size(stale.size);
    let at = call(fact.at);
    let message = format!(
        "{who} accesses {}{size} in {at}, opened in {}: its memory was freed in {}, and {:#x} belongs to other memory since, which was \
         exported in {}",
        stale.mapping,
        call(stale.opened),
        fact.place(stale.freed),
        address,
        fact.place(got)
    );
    let finding = Finding::new(&RULE, fact.at, stale.mapping, message).other(Some(stale.freed));
    Some(
        finding
            .values(stale.size, stale.fingerprint)
            .advice("keep what is opened by the allocation, not by its address, and close it when the memory is freed"),
    )
}

/// Physical memory that its owner has replaced. It may have handed over the old memory.
fn of_physical(fact: &Fact<'_>, outdated: &OutdatedUse) -> Finding {
    let who = fact.actor();
    let size = of_size(Some(outdated.size));
    let at = call(fact.at);
    let message = format!(
        "{who} accesses {}{size} in {at}, mapped in {}, as it did before: its memory was unmapped in {}, and other memory was mapped at its \
         address {:#x} in {}",
        outdated.mapping,
        call(outdated.mapped),
        fact.place(outdated.unmapped),
        outdated.address,
        fact.place(outdated.anew)
    );
    let finding = Finding::new(&RULE, fact.at, outdated.mapping, message).other(Some(outdated.anew));
    let finding = finding.values(Some(outdated.size), Some(outdated.fingerprint)).at_most(Severity::Note);
    finding.advice("let the owner send the new memory, and unmap the old memory then")
}
