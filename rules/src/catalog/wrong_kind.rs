//! # What it does
//!
//! Reports a call that receives an object of the wrong kind: handle data of physical memory that is put as an event's,
//! an event that is closed as physical memory, or bytes of one kind that are passed to the open of another.
//!
//! # Why it is bad
//!
//! The three kinds of handle data are blocks of different sizes from different allocators. Handles of objects are
//! pointers that an adapter does not check: it reads and frees what they point to. Only the bytes of a handle can be
//! distinguished, and only by their size.
//!
//! # Example
//!
//! The process that opens, where the other one shares physical memory:
//!
//! ```cpp
//! auto data = receive();
//! // Wrong: these bytes are not those of USM.
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! namespace physical = ipc::physical_memory;
//! auto data = receive();
//! auto mem = physical::open(data, ctx, dev);
//! ```
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
//! Each kind is used with its own functions. An address may belong to one kind now and to another later.
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
//! Store the kind with each handle, and send it along with the bytes.

use urscope_schema::{api::ResultCode, handle::Kind};

use super::{Check, Rule, When, wording::call};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Ending, Exporting, Fact, FactKind, Opening, Source, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "wrong-kind",
    severity: Severity::Error,
    when: When::Enter,
    title: "an object is passed to a function for another kind",
    sentence: "passed {what} to a function for another kind",
    facts: &[FactKind::InvalidEnding, FactKind::Exporting, FactKind::Opening],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let (What::InvalidEnding(Ending { target: Target::OtherKind(mismatch), .. })
    | What::Exporting(Exporting { source: Source::OtherKind(mismatch), .. })
    | What::Opening(Opening { mismatch: Some(mismatch), .. })) = fact.what
    else {
        return None;
    };
    let what = mismatch.is;
    let answer = match (mismatch.fingerprint, mismatch.expected) {
        (Some(_), _) => ResultCode::INVALID_VALUE,
        (None, Kind::Event) => ResultCode::INVALID_EVENT,
        (None, Kind::Usm) => ResultCode::INVALID_MEM_OBJECT,
        (None, _) => ResultCode::INVALID_ARGUMENT,
    };
    let who = fact.actor();
    let at = call(fact.at);
    let born = fact.place(mismatch.born);
    let expected = mismatch.expected.noun();
    let opened = mismatch.born.function.is_some_and(|function| function.effect().opens().is_some());
    let made = if opened { "opened" } else { "made" };
    let message = format!("{who} passes {what}, {made} in {born}, to {at}, which takes another kind: {expected}");
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(mismatch.born));
    Some(
        finding
            .values(None, mismatch.fingerprint)
            .advice("store the kind with each handle, and use the functions of that kind")
            .answer(answer),
    )
}
