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

use super::{
    Rule, When,
    wording::{call, times},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Opened, What},
};

pub(super) static RULE: Rule = Rule {
    code: "garbage-handle",
    severity: Severity::Note,
    when: When::Run,
    title: "an open was refused whose bytes no traced get has handed out",
    source: include_str!("garbage_handle.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::UnknownHandle(unknown) = fact.what else { return None };
    let Opened::Not(result) = unknown.opened else { return None };
    let (who, noun) = (fact.actor(), unknown.handle.kind.noun());
    let first = if unknown.times > 1 { ", the first time" } else { "" };
    let message = format!(
        "{who} was refused {} to open bytes as a {noun} that no traced process of this host got{first} in {}, which answered {result}",
        times(unknown.times),
        call(fact.at)
    );
    let advice = "compare what was sent with what was received; if its sender was not traced, trace it";
    let finding = Finding::new(&RULE, fact.at, unknown.handle, message).advice(advice);
    Some(finding.values(None, Some(unknown.fingerprint)))
}
