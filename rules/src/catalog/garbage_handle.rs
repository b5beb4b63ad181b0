//! # What it does
//!
//! Finds an open that was refused whose bytes no get of a traced process has handed out.
//!
//! # Why it is bad
//!
//! The bytes were damaged on their way, were never handle data, or come from somebody who is not traced. Nothing is promised for
//! such bytes: one adapter refuses them, another one opens what they happen to name. It is a note, because a trace cannot show
//! which of the three it was.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open damaged -> m fails
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Compare what was sent with what was received, byte by byte and in its length: the fingerprint of the get stands in the trace of
//! the sender. If the sender was not traced, trace it.

use urscope_schema::api::UrResult;

use super::{
    Check, Rule, RuleState, When,
    memory::{First, UnknownOpens},
    wording::{call, name, times},
};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        Tracker,
        fact::{Fact, FactKind, Outcome, UnknownHandle, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "garbage-handle",
    severity: Severity::Note,
    when: When::Run,
    title: "an open was refused whose bytes no traced get has handed out",
    facts: &[FactKind::OpenedUnknown, FactKind::CallsMissing, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Refusals::default())),
};

/// What is answered whatever the bytes are; or success without a result, which is reported as what it is.
const ANY_BYTES: [UrResult; 7] = [
    UrResult::UNINITIALIZED,
    UrResult::OUT_OF_HOST_MEMORY,
    UrResult::OUT_OF_RESOURCES,
    UrResult::UNSUPPORTED_FEATURE,
    UrResult::INVALID_NULL_HANDLE,
    UrResult::INVALID_NULL_POINTER,
    UrResult::SUCCESS,
];

/// The refused opens of each process.
#[derive(Clone, Debug, Default)]
struct Refusals(UnknownOpens);

impl RuleState for Refusals {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::OpenedUnknown(unknown) => {
                let Outcome::Refused(result) = unknown.outcome else { return };
                if !ANY_BYTES.contains(&result) && !is_of_other_size(fact, &unknown, result) {
                    self.0.count(fact.at, unknown);
                }
            }
            _ => found.extend(self.0.at_end(fact).filter_map(|first| report(fact.tracker, first))),
        }
    }

    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

/// Whether its size is the reason, which is reported as what it is.
fn is_of_other_size(fact: &Fact<'_>, unknown: &UnknownHandle, result: UrResult) -> bool {
    let given = || fact.tracker.other_size(fact.at.process, unknown.handle.kind, unknown.size?);
    result == UrResult::INVALID_VALUE && given().is_some()
}

fn report(tracker: &Tracker, unknown: &First<(Place, UnknownHandle)>) -> Option<Finding> {
    let First { first: (at, handle), count } = *unknown;
    let Outcome::Refused(result) = handle.outcome else { return None };
    let (who, noun) = (name(tracker, at.process), handle.handle.kind.noun());
    let first = if count > 1 { ", the first time" } else { "" };
    let message = format!(
        "{who} was refused {} to open bytes as a {noun} that no traced process of this host got{first} in {}, which answered {result}",
        times(count),
        call(at)
    );
    let advice = "compare what was sent with what was received; if its sender was not traced, trace it";
    let finding = Finding::new(&RULE, at, handle.handle, message).advice(advice);
    Some(finding.values(None, Some(handle.fingerprint)))
}
