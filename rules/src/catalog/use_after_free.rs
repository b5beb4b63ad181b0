//! # What it does
//!
//! Reports handle data that is opened, in this process or another one, after its memory was freed. If the addresses
//! have been allocated again, it is a [`stale-handle`](#stale-handle).
//!
//! Reports also a command (a copy, a fill, a prefetch or a kernel) that is enqueued, or executed in a command list, for
//! exported memory which this process has freed. So is one that is enqueued for a mapping of memory which its owner has
//! freed. In CUDA, each use of an opened event is reported that the process which made it has destroyed.
//!
//! That an owner frees what is open elsewhere is reported as [`freed-while-open`](#freed-while-open), also if no
//! command follows. Level Zero promises that the memory stays until all have closed it, so commands on it are right
//! there.
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
//! Free when every process has closed what it opened: use an acknowledgement or a barrier.

use urscope_schema::api::{Effect, Promise};
use urscope_schema::handle::Kind;

use super::wording::{call, dead_access, expired, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Expiry, Fact, FactKind, StaleEvent, StaleUse, What};

pub(super) static RULE: Rule = Rule {
    code: "use-after-free",
    severity: Severity::Error,
    when: When::Exit,
    title: "memory is used, or handle data of it opened, after it was freed",
    sentence: "used {what} after its end",
    facts: &[FactKind::OpenedExpired, FactKind::DeadAccess, FactKind::StaleUse, FactKind::StaleEvent],
    check: Check::Stateless(check),
};

const ADVICE: &str = "free when every process has closed what it opened: use an acknowledgement or a barrier";

fn check(fact: &Fact<'_>) -> Option<Finding> {
    // A free that is a command may come later than a command of another queue.
    let is_queued = |freed: Place| {
        matches!(freed.effect(), Some(Effect::FreesLater(_))) && !freed.promises(Promise::FreesEndAtOnce)
    };
    if let What::StaleUse(stale) = fact.what {
        let StaleUse { mapping, size, fingerprint, opened, freed, .. } = *stale;
        if is_queued(freed) || opened.promises(Promise::MemoryOutlivesFree) {
            return None;
        }
        let who = fact.actor();
        let of = of_size(size);
        let at = call(fact.at);
        let opened = call(opened);
        let freed_in = fact.place(freed);
        let message =
            format!("{who} accesses {mapping}{of} in {at}: it was opened in {opened}, and freed in {freed_in}");
        let finding = Finding::new(&RULE, fact.at, mapping, message).other(Some(freed)).values(size, fingerprint);
        return finding.advice(ADVICE).unless(Promise::MemoryOutlivesFree);
    }
    if let What::DeadAccess(access) = fact.what {
        let is_freed = access.used.was.kind == Kind::Usm && !is_queued(access.used.died);
        let finding = || dead_access(&RULE, fact, access, "freed");
        return is_freed.then(|| finding().advice("free the memory when the last command that uses it has completed"));
    }
    if let What::StaleEvent(stale) = fact.what {
        let StaleEvent { event, fingerprint, opened, destroyed } = *stale;
        let who = fact.actor();
        let at = call(fact.at);
        let opened = call(opened);
        let destroyed_in = fact.place(destroyed);
        let message = format!("{who} uses {event} in {at}: it was opened in {opened}, and destroyed in {destroyed_in}");
        let finding = Finding::new(&RULE, fact.at, event, message).other(Some(destroyed)).values(None, fingerprint);
        return Some(finding.advice("destroy an event when every process has destroyed what it opened"))
            .map(|finding| finding.note_where(Promise::MemoryOutlivesFree));
    }
    let What::OpenedExpired(old, outcome) = fact.what else { return None };
    let Expiry::Freed(freed) = old.reason else { return None };
    let got = call(old.got);
    let freed_in = fact.place(freed);
    let why = match old.handle.kind {
        Kind::EventHandle => format!("it was exported in {got}, and its event was destroyed in {freed_in}"),
        Kind::EventPoolHandle => format!("it was exported in {got}, and its event pool was destroyed in {freed_in}"),
        _ => format!("its memory was exported in {got} and freed in {freed_in}"),
    };
    let finding = expired(&RULE, fact, old, outcome, &why).other(Some(freed));
    if matches!(old.handle.kind, Kind::EventHandle | Kind::EventPoolHandle) {
        return Some(finding.advice("destroy it when every process has opened it, or later"));
    }
    Some(finding.advice(ADVICE))
}
