//! # What it does
//!
//! Finds handle data that is opened, in this process or another one, after the last handle with these bytes was put.
//!
//! # Why it is bad
//!
//! The put says that nobody will open the bytes any more. What comes of an open then depends on the kind and the adapter:
//! physical memory cannot be opened, because the put has closed its descriptor; memory can, as long as it is not freed; an
//! event can, as long as it lives. Where the open failed, it is an error; where it worked by luck, a warning; and a note of an
//! event, because the header says of its put that it does not destroy the event. (SYCL 2026.2 keeps the handle data of an
//! event until the event is destroyed, whatever the program puts.)
//!
//! Once the memory is freed as well, that is what is told: [`use-after-free`](#use-after-free).
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-physical h
//! consumer: open-physical h -> n fails
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! What is open stays open. Two gets of the same memory hand out equal bytes, which are good until the second is put.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: get p -> h2
//! producer: put h
//! consumer: open h -> m
//! producer: put h2
//! consumer: close m
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Put when every process has opened what it needs: wait for a message back, or a barrier.

use urscope_schema::handle::Kind;

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Expiry, Fact, FactKind, Outcome, What},
};

pub(super) static RULE: Rule = Rule {
    code: "use-after-put",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened after its put",
    facts: &[FactKind::OpenedExpired],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedExpired(expired, outcome) = fact.what else { return None };
    let Expiry::Put(put) = expired.reason else { return None };
    let what = expired.handle;
    let (became, most) = match (outcome, what.kind) {
        (Outcome::Refused(result), _) => (format!("was answered {result}"), Severity::Error),
        (Outcome::Done, Kind::EventHandle) => ("was let, because the event still lives".into(), Severity::Note),
        (Outcome::Done, _) => ("was let, by luck".into(), Severity::Warning),
    };
    let (who, at, ended) = (fact.actor(), call(fact.at), fact.place(put));
    let message = format!(
        "{who} opens {what} in {at} and {became}: it was put in {ended}, having been got in {}",
        call(expired.got)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(put));
    Some(
        finding
            .values(expired.size, Some(expired.fingerprint))
            .at_most(most)
            .advice("put when every process has opened what it needs: wait for a message back, or a barrier"),
    )
}
