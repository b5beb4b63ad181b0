//! # What it does
//!
//! Reports memory that its owner frees while a mapping of it is open, in another process or in the
//! owner itself. It may be freed by `urUSMFree`, by a command of a queue, or with its pool.
//!
//! It is a note where it cannot be proved: the consumer was killed at an unknown moment after its last
//! call, the application has released the mapping's context, the command that frees may wait for an
//! event of another process, or not the memory but only its context was released.
//!
//! Level Zero: a note. The driver keeps the memory until all that opened it have closed it. There, an event or an event
//! pool that is destroyed while a process has it open is noted, too: the specification lets a driver free it at once.
//!
//! CUDA: an error, because the documentation leaves undefined what follows, although today's driver keeps the memory.
//! An event that is destroyed while it is open is noted: only operations on it from then on are undefined
//! (`use-after-free`).
//!
//! # Why it is bad
//!
//! SYCL states that the free invalidates every mapping. What the consumer then reads is undefined: the old content, the
//! content of the next allocation, or a device fault. On today's adapters it usually looks right.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ipc::memory::put(handle, ctx);
//! // Wrong: the other process has it open.
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier(); // The other process has closed it.
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! cuMemAlloc(&p, size);
//! cuIpcGetMemHandle(&handle, p);
//! send(handle);
//! // Wrong: the other process has it open.
//! cuMemFree(p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! producer: put h
//! producer: free p
//! consumer: close m
//! ```
//!
//! # Good trace
//!
//! A free that is refused frees nothing, and a consumer that is gone holds nothing.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! producer: free p fails
//! consumer: close m
//! victim: open h -> v
//! victim: close v
//! victim: open h -> v
//! victim: close v begins
//! victim: killed
//! victim: gone
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Let the consumer close before the producer frees: use an acknowledgement, a barrier, or the exit of the consumer.

use std::collections::BTreeSet;

use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{api::Promise, counted};

use super::wording::{call, name, of_size};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::Tracker;
use crate::tracker::fact::{Fact, FactKind, Freed, Freeing, OpenMapping, Opened, What};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-open",
    severity: Severity::Error,
    when: When::Exit,
    title: "memory, or an event of Level Zero or CUDA, is freed while a process has it open",
    sentence: "freed {what} while {other} had it open",
    facts: &[FactKind::Freed, FactKind::ContextReleased, FactKind::Opened, FactKind::ProcessEnded, FactKind::Finished],
    check: Check::Stateful(|| Box::new(ReleasedContexts::default())),
};

/// How many mappings a finding names.
const MAX_NAMED: usize = 8;

const ADVICE: &str =
    "free after every process has closed its mapping: wait for an acknowledgement, a barrier, or the consumer's exit";

/// The memory whose context was released while it was open. At its end a process releases its contexts,
/// which `exporter-gone` reports, so it is reported only if it was closed before that.
#[derive(Clone, Debug, Default)]
struct ReleasedContexts(Vec<(Finding, Vec<OpenMapping>)>);

impl RuleState for ReleasedContexts {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Freed(freed) => found.extend(freed_with_holders(fact, freed)),
            What::Opened(opened) => found.extend(freed_meanwhile(fact, &opened)),
            What::ContextReleased(freed) => {
                self.0.extend(context_released(fact, freed).map(|finding| (finding, freed.holders.clone())));
            }
            What::ProcessEnded(_) => {
                let of_it = |(finding, _): &mut (Finding, _)| finding.at.process == fact.at.process;
                let closed = |(_, holders): &(_, Vec<OpenMapping>)| !holders.iter().any(|holder| is_open(fact, holder));
                found.extend(self.0.extract_if(.., of_it).filter(closed).map(|(finding, _)| finding));
            }
            What::Finished => found.extend(self.0.drain(..).map(|(finding, _)| finding)),
            _ => {}
        }
    }
}

fn is_open(fact: &Fact<'_>, holder: &OpenMapping) -> bool {
    let state = fact.tracker.state(holder.opened.process).filter(|state| state.ended.is_none());
    state.and_then(|state| state.mappings.get(holder.pointer)).is_some_and(|mapping| mapping.state == State::Alive)
}

fn freed_with_holders(fact: &Fact<'_>, freed: &Freed) -> Option<Finding> {
    let first = freed.holders.first()?;
    let who = fact.actor();
    let what = freed.what;
    let size = of_size(freed.size);
    let at = call(fact.at);
    let holders = holders(fact, freed);
    let frees = if what.kind == Kind::Usm { "frees" } else { "destroys" };
    let (frees, with, most) = match freed.how {
        Freeing::Call | Freeing::Enqueued { waits: false } => (frees, String::new(), Severity::Error),
        Freeing::Enqueued { waits: true } => ("enqueues the free of", String::new(), Severity::Note),
        Freeing::Pool(pool) => ("frees", format!(" with its pool {pool:#x}"), Severity::Error),
        Freeing::Context(context) => ("frees", format!(" with its context {context:#x}"), Severity::Error),
    };
    let unless = match (first.is_certain, freed.how) {
        (false, _) => "; not proved, because it may have been gone by then",
        (true, Freeing::Enqueued { waits: true }) => {
            "; not proved, because the command may wait for an event of another process"
        }
        (true, _) => "",
    };
    let message = format!("{who} {frees} {what}{size}{with} in {at} while {holders}{unless}");
    // What an event or an event pool is used for afterwards decides.
    let most = if first.is_certain && what.kind == Kind::Usm { most } else { Severity::Note };
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(first.opened)).at_most(most);
    let mut known = BTreeSet::from([first.opened.process]);
    let others = freed.holders.iter().map(|holder| holder.opened).filter(|opened| known.insert(opened.process));
    let finding = Finding { others: others.collect(), ..finding };
    let advice = if what.kind == Kind::Usm { ADVICE } else { "destroy it only after every process has closed it" };
    Some(finding.values(freed.size, freed.fingerprint).advice(advice).note_where(Promise::MemoryOutlivesFree))
}

/// The memory may live as long as the adapter keeps the context.
fn context_released(fact: &Fact<'_>, freed: &Freed) -> Option<Finding> {
    let first = freed.holders.first()?;
    let who = fact.actor();
    let what = freed.what;
    let size = of_size(freed.size);
    let at = call(fact.at);
    let message = format!(
        "{who} releases the context of {what}{size} in {at} while {}; Level Zero may free the memory with its context",
        holders(fact, freed)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(first.opened)).at_most(Severity::Note);
    Some(finding.values(freed.size, freed.fingerprint).advice(ADVICE).note_where(Promise::MemoryOutlivesFree))
}

/// An open that began before the free of its memory, and returned after it.
fn freed_meanwhile(fact: &Fact<'_>, opened: &Opened) -> Option<Finding> {
    let export = fact.tracker.exports.get(opened.export?)?;
    let freed = export.last_free.filter(|freed| freed.time > fact.at.time)?;
    let size = export.subject.size;
    let what = Handle { kind: Kind::Usm, value: export.subject.value? };
    let message = format!(
        "{} frees {what}{} in {} while {} opens it as {:#x} in {}",
        name(fact.tracker, freed.process),
        of_size(size),
        call(freed),
        fact.actor(),
        opened.handle.value,
        call(fact.at)
    );
    let finding = Finding::new(&RULE, freed, what, message).other(Some(fact.at));
    Some(finding.values(size, opened.fingerprint).advice(ADVICE).note_where(Promise::MemoryOutlivesFree))
}

/// `consumer (pid 7) has it open as 0x7f00, since call 3 (…)`, for each of the first mappings.
fn holders(fact: &Fact<'_>, freed: &Freed) -> String {
    let holder = |holder: &OpenMapping| holds(fact.tracker, fact, holder);
    let named: Vec<String> = freed.holders.iter().take(MAX_NAMED).map(holder).collect();
    let others = match freed.holders.len() - named.len() {
        0 => String::new(),
        others => format!(" ({} more open)", counted(others as u64, "mapping")),
    };
    format!("{}{others}", named.join(", and "))
}

fn holds(tracker: &Tracker, fact: &Fact<'_>, holder: &OpenMapping) -> String {
    let OpenMapping { opened, pointer, is_certain } = *holder;
    let who = if opened.process == fact.at.process { "the same process".into() } else { name(tracker, opened.process) };
    let has = if is_certain { "has" } else { "may have" };
    format!("{who} {has} it open as {pointer:#x}, since {}", call(opened))
}
