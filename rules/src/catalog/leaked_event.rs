//! # What it does
//!
//! Reports an event that a process opened from handle data and still holds references to when the process ends or when
//! the context of the event is released.
//!
//! Level Zero and CUDA: a note, unless they grow until the process ends (as with `leaked-mapping`). Libraries keep the
//! event pools that they have opened until their process ends.
//!
//! # Why it is bad
//!
//! An opened event keeps the event of the other process alive in the driver. It has no close function of its own:
//! `urEventRelease` ends it. (References that commands hold belong to the adapter and are not counted.)
//!
//! # Example
//!
//! The process that opened the event:
//!
//! ```cpp
//! auto data = receive();
//! auto *event = new sycl::event;
//! *event = ipc::event::open(data, ctx);
//! event->wait();
//! // Wrong: the object is never destroyed.
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! auto event = ipc::event::open(data, ctx);
//! event.wait();
//! // The end of its scope releases it.
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! producer: put-event h
//! producer: release-event e
//! ```
//!
//! # Good trace
//!
//! The producer may release its event first: the opened event stays valid.
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: context c
//! consumer: open-event h -> i in c
//! consumer: retain-event i
//! producer: put-event h
//! producer: release-event e
//! consumer: release-event i
//! consumer: release-event i
//! consumer: release c
//! ```
//!
//! # What to do
//!
//! Release it once for the open and once for each retain, before its context; in SYCL, let the event object be
//! destroyed.

use urscope_schema::{api::Promise, handle::Kind};

use super::{
    Check, Rule, When,
    memory::{grows, one_of},
    wording::left_object,
};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "leaked-event",
    severity: Severity::Warning,
    when: When::End,
    title: "an event is opened and never released",
    sentence: "opened an event and never released it",
    facts: &[FactKind::LeftObject],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::LeftObject(left, handle, object) = fact.what else { return None };
    let advice = match handle.kind {
        Kind::Event => object.born.words().end_event,
        Kind::EventPool => "close it with zeEventPoolCloseIpcHandle before its context is destroyed",
        _ => return None,
    };
    one_of(left, || left_object(&RULE, fact, handle, object, left).advice(advice))
        .map(|finding| finding.note_unless(grows(left, fact.at.time), Promise::OpensMayStay))
}
