//! # What it does
//!
//! Notes a wait for an opened event that was never answered, when the process that made the event has ended.
//!
//! # Why it is bad
//!
//! Who is to signal an event must live until it has: the wait has no time limit, and the process hangs. What became of the signal is
//! not in a trace, nor how long a process that was killed had still to live, so this is a note. (A wait for several events is left
//! out: which one did not come is not known.)
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! producer: put-event h
//! producer: release-event e
//! producer: exit
//! consumer: wait i begins
//! consumer: running
//! ```
//!
//! # Good trace
//!
//! An event that is signalled stays so, whoever ends.
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! producer: put-event h
//! producer: release-event e
//! producer: exit
//! consumer: wait i begins
//! consumer: returns
//! consumer: release-event i
//! ```
//!
//! # What to do
//!
//! Let the producer wait for its own queue before it ends; let the consumer ask for the event's status and look after its peer.

use super::{
    Rule, When,
    wording::{call, name},
};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        End,
        fact::{Fact, What},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "never-signalled",
    severity: Severity::Note,
    when: When::Run,
    title: "a wait for an event is never answered, and the event's process has ended",
    source: include_str!("never_signalled.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Waiting(waiting, how) = fact.what else { return None };
    let how = match how {
        End::Exited => "exited",
        End::Killed => "been killed",
        End::Running | End::Incomplete => return None,
    };
    let when = if waiting.late { "had by then" } else { "has" };
    let (who, what, source) = (fact.actor(), waiting.event, waiting.source);
    let message = format!(
        "{who} waits for {what} in {}, which never returned; {}, which made the event and shared it in {}, {when} {how}",
        call(waiting.wait),
        name(fact.tracker, source.process),
        call(source)
    );
    let finding = Finding::new(&RULE, waiting.wait, what, message).other(Some(source));
    let finding = finding.values(None, waiting.fingerprint);
    Some(finding.advice("let the producer wait for its own queue before it ends"))
}
