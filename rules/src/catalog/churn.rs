//! # What it does
//!
//! Reports handle data that a process gets and puts again and again: a hundred times or more, each time after it has
//! put all of it.
//!
//! Level Zero and CUDA: nothing is reported. A driver makes a handle anew at every get, and libraries get one for each
//! message.
//!
//! # Why it is bad
//!
//! It is allowed, but it costs time: each get and put is a call into the adapter, some of them reach the driver, and
//! each consumer repeats an open whose mapping it could have kept. The note states how much time the calls took.
//!
//! # Example
//!
//! The exporter, in the main loop of a program:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! for (int step = 0; step < 1000; step++) {
//!   // Wrong: the same handle data in each step.
//!   auto handle = ipc::memory::get(p, ctx);
//!   send(handle.data());
//!   barrier();
//!   ipc::memory::put(handle, ctx);
//! }
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
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
//! 101 times
//! producer: get p -> h
//! producer: put h
//! end
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! 200 times
//! producer: get p -> i
//! producer: put i
//! end
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Keep the handle data as long as the memory lives, and put it once, before the free.

use smallvec::SmallVec;
use urscope_schema::{api::Promise, duration};

use super::wording::{call, handle};
use super::{Check, Rule, RuleState, When, memory::PerProcess};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Exported, Fact, FactKind, What};
use crate::tracker::{ExportId, Map, exports::Export, records::Serial};

pub(super) static RULE: Rule = Rule {
    code: "churn",
    severity: Severity::Note,
    when: When::End,
    title: "the same handle data is got and put again and again",
    sentence: "got and put the same handle data again and again",
    facts: &[FactKind::Exported, FactKind::Put, FactKind::Freed, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(Churn::default())),
};

/// The number of gets of equal handle data, each after all of it was put, from which on that is reported.
const MIN_REPEATS: u64 = 100;

/// How many addresses and objects are reported per process.
const MAX_REPORTED: usize = 64;

/// What a process has exported: the lives of memory, each with the addresses in it, in rising order, and the lives of
/// objects.
type Lives = Map<Option<Serial>, SmallVec<[(Option<u64>, SubjectGets); 1]>>;

/// The gets of each process.
#[derive(Clone, Debug, Default)]
struct Churn(PerProcess<Lives>);

/// The gets of one address or object.
#[derive(Clone, Debug)]
struct SubjectGets {
    /// The export of the latest get. If every get returns other bytes, each has an export of its own.
    export: ExportId,
    count: u64,
    /// The number of gets after all handle data had been put.
    repeats: u64,
    /// How long the gets and their puts took, in nanoseconds.
    took: u64,
}

impl RuleState for Churn {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Exported(exported) => self.got(fact, exported),
            What::Put(put) => {
                let subject = put.export.and_then(|id| fact.tracker.exports.get(id)).map(|export| export.subject);
                let of_process = self.0.get_mut(fact.at.process);
                if let Some((all, it)) = of_process.zip(subject)
                    && let Some(of_life) = all.get_mut(&it.serial)
                    && let Ok(index) = of_life.binary_search_by_key(&it.value, |(value, _)| *value)
                    && let Some((_, gets)) = of_life.get_mut(index)
                {
                    gets.took += put.took;
                }
            }
            What::Freed(freed) => {
                let Some(all) = self.0.get_mut(fact.at.process) else { return };
                let Some(of_life) = all.get_mut(&Some(freed.serial)) else { return };
                of_life.retain(|(_, gets)| gets.repeats >= MIN_REPEATS);
                if of_life.is_empty() {
                    all.remove(&Some(freed.serial));
                }
            }
            What::ProcessEnded(_) => {
                let all = self.0.take(fact.at.process).unwrap_or_default();
                let gets = all.into_values().flatten().map(|(_, gets)| gets);
                let frequent = gets.filter(|gets| gets.repeats >= MIN_REPEATS);
                let mut frequent: Vec<_> =
                    frequent.filter_map(|gets| Some((fact.tracker.exports.get(gets.export)?, gets))).collect();
                frequent.sort_by_key(|(_, gets)| gets.export);
                found.extend(
                    frequent
                        .iter()
                        .take(MAX_REPORTED)
                        .filter_map(|(export, gets)| report(fact, export, gets).unless(Promise::GetsAreCounted)),
                );
            }
            _ => {}
        }
    }
}

impl Churn {
    fn got(&mut self, fact: &Fact<'_>, Exported { data, took, .. }: Exported<'_>) {
        let Some((id, export)) = data.export.and_then(|id| Some((id, fact.tracker.exports.get(id)?))) else { return };
        let all = self.0.get_or_insert_with(fact.at.process, Map::default);
        let of_life = all.entry(export.subject.serial).or_default();
        let value = export.subject.value;
        let index = of_life.binary_search_by_key(&value, |(value, _)| *value).unwrap_or_else(|index| {
            of_life.insert(index, (value, SubjectGets { export: id, count: 0, repeats: 0, took: 0 }));
            index
        });
        let Some((_, gets)) = of_life.get_mut(index) else { return };
        let memory = fact.tracker.state(fact.at.process).and_then(|state| state.memory_of(data));
        // Equal bytes are one export; of other bytes, the memory counts them.
        let is_only = export.handles == 1 && (gets.export == id || memory.is_some_and(|memory| memory.handles == 1));
        gets.repeats += u64::from(is_only && gets.count > 0);
        gets.count += 1;
        gets.took += took;
        gets.export = id;
    }
}

fn report(fact: &Fact<'_>, export: &Export, gets: &SubjectGets) -> Finding {
    let subject = export.subject;
    let what = handle(subject.kind.shares().unwrap_or(subject.kind), subject.value.unwrap_or_default());
    let message = format!(
        "{} got the handle data of {what} {} times, {} times after all of it had been put, the last time in {}; \
         its gets and puts took {}",
        fact.actor(),
        gets.count,
        gets.repeats,
        call(export.latest_get),
        duration(gets.took)
    );
    let finding =
        Finding::new(&RULE, export.latest_get, what, message).values(subject.size, Some(export.fingerprint()));
    finding.advice("keep the handle data as long as the memory lives, and put it once")
}
