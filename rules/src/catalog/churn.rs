//! # What it does
//!
//! Says that a process got and put the same handle data over and over: a hundred times or more, each time after all of it had been put.
//!
//! # Why it is bad
//!
//! It is allowed, and it costs: each get and put is a call into the adapter, some of them reach the driver, and each consumer opens anew
//! what it could have kept open. The note says what the calls cost here.
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

use super::{
    Check, Rule, RuleState, When,
    memory::PerProcess,
    wording::{call, handle},
};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        ExportId,
        exports::Export,
        fact::{Exported, Fact, FactKind, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "churn",
    severity: Severity::Note,
    when: When::End,
    title: "the same handle data is got and put over and over",
    facts: &[FactKind::Exported, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(Churn::default())),
};

/// How often equal handle data is got, all of it having been put, until that is reported.
const OFTEN: u64 = 100;

/// How many exports that were got and put over and over are remembered of a process.
const EXPORTS: usize = 64;

/// What was got and put over and over.
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

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

fn report(fact: &Fact<'_>, export: &Export) -> Finding {
    let Export { subject, got, gets, again, spent, .. } = export;
    let what = handle(subject.kind.shares().unwrap_or(subject.kind), subject.value.unwrap_or_default());
    let message = format!(
        "{} got the handle data of {what} {gets} times, {again} times after having put all of it, the last time in {}; its gets \
         and puts took {} ms",
        fact.actor(),
        call(*got),
        spent.div_ceil(1_000_000)
    );
    let finding = Finding::new(&RULE, *got, what, message).values(subject.size, Some(export.fingerprint()));
    finding.advice("keep the handle data as long as the memory lives, and put it once")
}
