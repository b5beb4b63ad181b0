//! # What it does
//!
//! Notes handle data that was got and that no process of the run has tried to open: one note for all of one place.
//!
//! # Why it is bad
//!
//! It is not, but a get costs a call into the driver, and on some drivers a file descriptor; and a message that was lost looks like
//! this. It is told only when the whole run is known: other handle data went from process to process there, all have ended in
//! order and left whole traces, and nothing was opened that came from elsewhere.
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
//! What was tried counts, by whichever address; who was killed may have been about to, and where nobody opens anything there is nobody to serve.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p + 64 -> i
//! consumer: open h -> m fails
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
//! Get handle data when somebody asks for it, or look for who was to receive it.

use super::{
    Rule, When,
    wording::{call, handle, number, of_size},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "get-without-open",
    severity: Severity::Note,
    when: When::Run,
    title: "handle data is got that nobody opens",
    source: include_str!("get_without_open.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Unopened(unopened) = fact.what else { return None };
    let what = handle(unopened.kind.shares()?, unopened.value?);
    let (who, size, got) = (fact.actor(), of_size(unopened.size), call(unopened.got));
    let more = match unopened.count - 1 {
        0 => String::new(),
        more => format!(", nor {} more that handle data was got for there", number(more, "object")),
    };
    let message =
        format!("{who} got handle data for {what}{size} in {got}, and no process of this run tried to open it{more}");
    let finding = Finding::new(&RULE, unopened.got, what, message).values(unopened.size, Some(unopened.fingerprint));
    let finding = finding.advice("get handle data when somebody asks for it, or look for who was to receive it");
    Some(Finding { count: unopened.count, ..finding })
}
