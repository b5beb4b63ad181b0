//! # What it does
//!
//! Notes memory that is opened in the very process that exported it, once for each process.
//!
//! # Why it is bad
//!
//! It is not, with Level Zero: the mapping is a second address of the same memory. But it needs a close of its own, it costs what a
//! mapping costs for memory that is at hand, and other backends refuse it: CUDA does. (Events and physical memory are left out.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: open h -> m
//! producer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A child that was forked is another process.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: fork consumer
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Compare who sent the bytes with oneself, and use the pointer that is there. Where it is on purpose, as in a test, suppress it.

use urscope_schema::handle::Kind;

use super::{
    Check, Rule, RuleState, When,
    memory::{First, PerProcess},
    wording::{call, handle, of_size, times},
};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        End,
        fact::{Fact, FactKind, Opened, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "open-in-producer",
    severity: Severity::Note,
    when: When::End,
    title: "memory is opened in the process that exported it",
    facts: &[FactKind::Opened, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(Opens::default())),
};

/// The opens of each process of memory that it exported itself.
#[derive(Clone, Debug, Default)]
struct Opens(PerProcess<First<Own>>);

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Own {
    opened: Place,
    pointer: u64,
    got: Place,
    size: Option<u64>,
    fingerprint: u64,
}

impl RuleState for Opens {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Opened(opened) => {
                if let Some(own) = own(fact, &opened) {
                    self.0.count(fact.at.process, || own);
                }
            }
            What::ProcessEnded(how) => {
                let first = self.0.take(fact.at.process).filter(|_| how == End::Exited);
                found.extend(first.map(|first| report(fact, first)));
            }
            _ => {}
        }
    }

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

fn own(fact: &Fact<'_>, opened: &Opened) -> Option<Own> {
    let export = fact.tracker.exports().get(opened.export.filter(|_| opened.handle.kind == Kind::Mapping)?)?;
    let (got, size, fingerprint) = (export.got, export.subject.size, export.fingerprint());
    let own = Own { opened: fact.at, pointer: opened.handle.value, got, size, fingerprint };
    (got.process == fact.at.process).then_some(own)
}

fn report(fact: &Fact<'_>, First { first, count }: First<Own>) -> Finding {
    let (who, what, size) = (fact.actor(), handle(Kind::Mapping, first.pointer), of_size(first.size));
    let all = if count == 1 { String::new() } else { format!(", and did so {} in all", times(count)) };
    let message = format!(
        "{who} opened {what}{size} in {} from handle data that it had got itself, in {}{all}",
        call(first.opened),
        call(first.got)
    );
    let finding = Finding::new(&RULE, first.opened, what, message).other(Some(first.got));
    let finding = finding.values(first.size, Some(first.fingerprint));
    finding.advice("use the pointer that is there: some backends refuse to open it here")
}
