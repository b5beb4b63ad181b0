//! # What it does
//!
//! Reports handle data that a process gets and puts again and again: a hundred times or more, each time after it has
//! put all of it.
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

use urscope_schema::duration;

use super::{
    Check, Rule, RuleState, When,
    memory::PerProcess,
    wording::{call, handle},
};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        ExportId,
        exports::{Export, Exports},
        fact::{Exported, Fact, FactKind, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "churn",
    severity: Severity::Note,
    when: When::End,
    title: "the same handle data is got and put again and again",
    sentence: "got and put the same handle data again and again",
    facts: &[FactKind::PartExportedUsm, FactKind::PartExportedOther, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(Churn::default())),
};

/// From how many gets of equal handle data on, each after all of it was put, that is reported.
const OFTEN: u64 = Exports::OFTEN;

/// How many such exports are remembered per process.
const EXPORTS: usize = 64;

/// The exports that each process gets and puts again and again.
#[derive(Clone, Debug, Default)]
struct Churn(PerProcess<Vec<ExportId>>);

impl RuleState for Churn {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Exported(Exported { data, again: Some(OFTEN), .. }) => {
                let often = self.0.get_or_insert_with(fact.at.process, Vec::new);
                often.extend(data.export.filter(|_| often.len() < EXPORTS));
            }
            What::ProcessEnded(_) => {
                let often = self.0.take(fact.at.process).unwrap_or_default();
                let exports = often.into_iter().filter_map(|id| fact.tracker.exports().get(id));
                found.extend(exports.map(|export| report(fact, export)));
            }
            _ => {}
        }
    }
}

fn report(fact: &Fact<'_>, export: &Export) -> Finding {
    let Export { subject, gets, again, spent, .. } = export;
    let what = handle(subject.kind.shares().unwrap_or(subject.kind), subject.value.get().unwrap_or_default());
    let message = format!(
        "{} got the handle data of {what} {gets} times, {again} times after all of it had been put, the last time in {}; \
         its gets and puts took {}",
        fact.actor(),
        call(export.got()),
        duration(*spent)
    );
    let finding =
        Finding::new(&RULE, export.got(), what, message).values(subject.size.get(), Some(export.fingerprint()));
    finding.advice("keep the handle data as long as the memory lives, and put it once")
}
