//! # What it does
//!
//! Reports, once per process, that it opened handle data which no get of a traced process returned, neither as it is
//! nor before it was changed on its way (see [`altered-handle`](#altered-handle)).
//!
//! # Why it is bad
//!
//! The other process is not observed. It may free what is open here, or never put what it got, and urscope cannot find
//! that. So a run without other findings is "partly judged" instead of clean. The same holds for an IPC handle of Level
//! Zero that may come from either of two gets: the message names both.
//!
//! # Example
//!
//! Two programs that share memory:
//!
//! ```sh
//! ./producer & # Wrong: it is not traced.
//! urscope run -- ./consumer
//! ```
//!
//! Fixed:
//!
//! ```sh
//! urscope run -- sh -c '
//!   ./producer &
//!   ./consumer'
//! ```
//!
//! # Bad trace
//!
//! ```text
//! consumer: open h -> m
//! consumer: close m
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
//! Trace the producer, too: start it under `urscope run`, or with `LD_PRELOAD` and the same `URSCOPE_DIR`. Pass the
//! traces of all processes of a host to one `urscope check`. If the other process is not yours, suppress this rule
//! (`urscope check --suppressions FILE`).

use super::memory::{FirstOf, UnknownOpens, changed, either, is_damaged};
use super::wording::{call, name, one, times};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::Tracker;
use crate::tracker::fact::{Fact, FactKind, Outcome, UnknownHandle, What};

pub(super) static RULE: Rule = Rule {
    code: "untraced-peer",
    severity: Severity::Note,
    when: When::Run,
    title: "handle data is opened that no traced process exported",
    sentence: "opened handle data that no traced process had exported",
    facts: &[FactKind::OpenedUnknown, FactKind::CallsMissing, FactKind::Finished],
    check: Check::Stateful(|| Box::new(UntracedOpens::default())),
};

/// The successful opens of each process.
#[derive(Clone, Debug, Default)]
struct UntracedOpens(UnknownOpens);

impl RuleState for UntracedOpens {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::OpenedUnknown(unknown) => {
                // An adapter may have written into known bytes, also for another thread that opens the same ones.
                if unknown.outcome == Outcome::Succeeded && !unknown.overwritten && !is_damaged(unknown) {
                    self.0.count(fact.at, *unknown);
                }
            }
            _ => found.extend(self.0.at_end(fact).map(|first| report(fact.tracker, first))),
        }
    }
}

fn report(tracker: &Tracker, unknown: &FirstOf<(Place, UnknownHandle)>) -> Finding {
    let FirstOf { first: (at, handle), count } = *unknown;
    let who = name(tracker, at.process);
    let what = one(handle.handle.kind);
    let first = if count > 1 { ", first" } else { "" };
    let changed = changed(tracker, unknown);
    let known = changed.as_ref().map_or("; urscope does not see what its producer does", |(_, text)| text);
    let which = either(tracker, &handle);
    let which = which.as_deref().unwrap_or("that no traced process of this host exported");
    let message = format!("{who} opened {what} {which}, {}{first} in {}{known}", times(count), call(at));
    let advice = match (&changed, handle.one_of) {
        (Some(_), _) => at.words().changed_bytes,
        (None, Some(_)) => "look at both: a driver whose handles hold the descriptor twice leaves no doubt",
        (None, None) => "trace the producer, too, and pass all traces to one check",
    };
    let finding = Finding::new(&RULE, at, handle.handle, message).advice(advice);
    finding.other(changed.map(|(got, _)| got)).values(None, Some(handle.fingerprint))
}
