//! # What it does
//!
//! Reports handle data that was got and that no process of the run tried to open. There is one note for all gets at one
//! place.
//!
//! Level Zero: nothing is reported. Libraries map the descriptor of a handle by mmap(2), too, which no trace shows.
//!
//! # Why it is bad
//!
//! It is allowed, but a get costs a call into the driver and, on some drivers, a file descriptor. A lost message looks
//! the same. The rule reports only when the whole run is known: other handle data was passed between processes of the
//! host, all processes ended in order and left complete traces, and no process opened handle data of unknown origin.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! // Noted: no process opens it.
//! auto handle = ipc::memory::get(p, ctx);
//! ipc::memory::put(handle, ctx);
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
//! producer: alloc q 4096
//! producer: get q -> g
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: put g
//! ```
//!
//! # Good trace
//!
//! An attempt to open counts, by any of the addresses. A process that was killed may have been about to open. On a host
//! where no process opens anything, nothing is reported.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p + 64 -> i
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: put i
//! sender@2: alloc q 4096
//! sender@2: get q -> g
//! sender@2: alloc s 4096
//! sender@2: get s -> f
//! receiver@2: open g -> n
//! receiver@2: close n
//! sender@2: put g
//! sender@2: put f
//! third@2: killed
//! alone@3: alloc r 4096
//! alone@3: get r -> e
//! alone@3: put e
//! ```
//!
//! # What to do
//!
//! Get handle data when a process asks for it, or find out which process should have received it.

use std::num::NonZeroU64;

use urscope_schema::api::Promise;
use urscope_schema::{api::Function, counted};

use super::wording::{call, handle, name, of_size};
use super::{Check, Rule, RuleState, When, memory::order};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, What};
use crate::tracker::{Map, Set, Tracker, exports::Export};

pub(super) static RULE: Rule = Rule {
    code: "get-without-open",
    severity: Severity::Note,
    when: When::Run,
    title: "handle data is exported, and no process opens it",
    sentence: "got handle data that no process opened",
    facts: &[FactKind::Opening, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Hosts::default())),
};

/// The hosts on which handle data is exchanged. Nothing is reported for other hosts, nor if some handle
/// data is unknown.
#[derive(Clone, Debug, Default)]
struct Hosts {
    /// Hosts on which a process tried to open what another one had exported.
    exchanging: Set<u64>,
    /// Hosts on which a process tried to open handle data that no traced process got.
    unknown: Set<u64>,
}

impl RuleState for Hosts {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Opening(opening) if opening.open.fingerprint.is_some() => {
                let Some(host) = fact.tracker.process(fact.at.process).map(|process| process.host) else { return };
                match opening.export.and_then(|id| fact.tracker.exports.get(id)) {
                    None => {
                        self.unknown.insert(host);
                    }
                    Some(export) if export.producer != fact.at.process => {
                        self.exchanging.insert(host);
                    }
                    Some(_) => {}
                }
            }
            What::Finished => {
                let unopened = self.unopened(fact.tracker);
                found.extend(unopened.iter().filter_map(|unopened| report(fact.tracker, unopened)));
            }
            _ => {}
        }
    }
}

/// Handle data that no process tried to open.
struct Unopened<'t> {
    export: &'t Export,
    /// The number of objects that were exported at the same place in the program.
    count: u64,
}

impl Hosts {
    /// The handle data that no process tried to open, on hosts where all processes that could have are known and others
    /// do exchange handle data: one entry per place in the program that got it, in the order of time.
    fn unopened<'t>(&self, tracker: &'t Tracker) -> Vec<Unopened<'t>> {
        // Exports that the tracker has forgotten may have been opened.
        if tracker.has_forgotten() {
            return Vec::new();
        }
        let may_open = |host: &u64| tracker.states.iter().any(|state| state.may_open(*host));
        let hosts = self.exchanging.iter().copied();
        let hosts: Set<u64> = hosts.filter(|host| !self.unknown.contains(host) && !may_open(host)).collect();
        let mut places: Map<(u32, Option<Function>, Option<NonZeroU64>), Unopened<'_>> = Map::default();
        for export in lives(tracker, &hosts) {
            let Place { process, function, stack, .. } = export.latest_get;
            let unopened = places.entry((process.0, function, stack)).or_insert(Unopened { export, count: 0 });
            unopened.count += 1;
            if order(&export.latest_get) < order(&unopened.export.latest_get) {
                unopened.export = export;
            }
        }
        let mut all: Vec<_> = places.into_values().collect();
        all.sort_by_key(|unopened| order(&unopened.export.latest_get));
        all
    }
}

/// The first get of each object on these hosts that no process tried to open through any of its exports.
fn lives<'t>(tracker: &'t Tracker, hosts: &Set<u64>) -> impl Iterator<Item = &'t Export> {
    let mut lives = Map::default();
    for export in tracker.exports.iter().filter(|export| hosts.contains(&export.host())) {
        let (first, tried) = lives.entry(export.life()).or_insert((export, export.tried));
        if order(&export.latest_get) < order(&first.latest_get) {
            *first = export;
        }
        *tried |= export.tried;
    }
    lives.into_values().filter(|(_, tried)| !tried).map(|(export, _)| export)
}

fn report(tracker: &Tracker, unopened: &Unopened<'_>) -> Option<Finding> {
    let export = unopened.export;
    let count = unopened.count;
    let subject = export.subject;
    let what = handle(subject.kind.shares()?, subject.value?);
    let who = name(tracker, export.latest_get.process);
    let size = of_size(subject.size);
    let got = call(export.latest_get);
    let more = match count - 1 {
        0 => String::new(),
        more => format!(
            "; the same place got handle data for {}, which none tried to open either",
            counted(more, "more object")
        ),
    };
    let message =
        format!("{who} got handle data for {what}{size} in {got}, and no traced process tried to open it{more}");
    let finding =
        Finding::new(&RULE, export.latest_get, what, message).values(subject.size, Some(export.fingerprint()));
    let finding =
        finding.advice("get handle data when a process asks for it, or find out which process should have received it");
    Finding { count, ..finding }.unless(Promise::HandlesAreDescriptors)
}
