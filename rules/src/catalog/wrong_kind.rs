//! # What it does
//!
//! Finds a call that is given an object of another kind than its own: handle data of physical memory that is put as an event's,
//! an event that is closed as physical memory, bytes of one kind that are handed to the open of another.
//!
//! # Why it is bad
//!
//! The three kinds of handle data are blocks of different sizes from different allocators, and the handles of objects are
//! pointers that an adapter believes: it reads and frees what lies there. The bytes of a handle it can tell apart, by their
//! size alone.
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! producer: put-event h
//! producer: release-physical m
//! ```
//!
//! # Good trace
//!
//! Each kind by its own functions. An address may be of one kind now and of another later.
//!
//! ```text
//! producer: physical m ipc
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: close-physical n
//! producer: put-physical h
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! consumer: release-event i
//! producer: put-event h
//! ```
//!
//! # What to do
//!
//! Keep with each handle what it is a handle of, and send that along with its bytes.

use urscope_schema::{api::UrResult, handle::Kind};

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Ending, Exporting, Fact, FactKind, Opening, Source, Target, What},
};

pub(super) static RULE: Rule = Rule {
    code: "wrong-kind",
    severity: Severity::Error,
    when: When::Enter,
    title: "an object is handed to a function that is for another kind",
    facts: &[FactKind::InvalidEnding, FactKind::Exporting, FactKind::Opening],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let (What::InvalidEnding(Ending { target: Target::OtherKind(confusion), .. })
    | What::Exporting(Exporting { source: Source::OtherKind(confusion), .. })
    | What::Opening(Opening { confusion: Some(confusion), .. })) = fact.what
    else {
        return None;
    };
    let what = confusion.is;
    let answer = match (confusion.fingerprint, confusion.taken_for) {
        (Some(_), _) => UrResult::INVALID_VALUE,
        (None, Kind::Event) => UrResult::INVALID_EVENT,
        (None, Kind::Usm) => UrResult::INVALID_MEM_OBJECT,
        (None, _) => UrResult::INVALID_ARGUMENT,
    };
    let (who, at, born) = (fact.actor(), call(fact.at), fact.place(confusion.born));
    let taken_for = confusion.taken_for.noun();
    let message =
        format!("{who} hands {what}, which is from {born}, to {at}, which takes it for another kind: {taken_for}");
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(confusion.born));
    Some(
        finding
            .values(None, confusion.fingerprint)
            .advice("keep with each handle what it is a handle of, and use the functions of that kind")
            .answer(answer),
    )
}
