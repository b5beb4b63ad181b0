//! # What it does
//!
//! Says once of a process that it opened handle data which no get of a traced process has handed out.
//!
//! # Why it is bad
//!
//! The other side is not seen: it may free what is open here, or never put what it got, and nothing is found of that. The verdict
//! holds for the traced processes only.
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
//! Trace the producer, too: start it under `urscope run`, or with `LD_PRELOAD` and the same `URSCOPE_DIR`; hand the traces of all
//! processes of a host to one `urscope check`.

use super::{
    Rule, When,
    wording::{call, times},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Opened, What},
};

pub(super) static RULE: Rule = Rule {
    code: "untraced-peer",
    severity: Severity::Note,
    when: When::Run,
    title: "handle data is opened that no traced process exported",
    source: include_str!("untraced_peer.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::UnknownHandle(unknown) = fact.what else { return None };
    if unknown.opened != Opened::Well {
        return None;
    }
    let (who, noun) = (fact.actor(), unknown.handle.kind.noun());
    let first = if unknown.times > 1 { ", first" } else { "" };
    let message = format!(
        "{who} opened a {noun} that no traced process of this host exported, {}{first} in {}: what its producer does is not seen",
        times(unknown.times),
        call(fact.at)
    );
    let advice = "trace the producer, too, and hand all traces to one check";
    let finding = Finding::new(&RULE, fact.at, unknown.handle, message).advice(advice);
    Some(finding.values(None, Some(unknown.fingerprint)))
}
