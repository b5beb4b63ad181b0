//! # What it does
//!
//! Reports a get of an event, or of memory, that this process itself opened from handle data.
//!
//! # Why it is bad
//!
//! Only the process that made an event can share it: the header demands UR_RESULT_ERROR_INVALID_EVENT. The
//! specifications do not mention opened memory, so that is a note, but no adapter supports it: they return
//! UR_RESULT_ERROR_INVALID_ARGUMENT. (Physical memory that was opened may be shared again.)
//!
//! # Example
//!
//! A process that passes on what it received:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! // Wrong: p belongs to another process.
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! send(data);
//! barrier();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! consumer: get-event i -> h2 fails
//! consumer: release-event i
//! producer: put-event h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! consumer: release-event i
//! producer: put-event h
//! producer: release-event e
//! ```
//!
//! # What to do
//!
//! Forward the bytes that were received: any number of processes can open them while the event or the memory lives.

use urscope_schema::{api::ResultCode, handle::Kind};

use super::wording::{call, handle, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Source, What};
use crate::tracker::records::{Mapping, Origin};

pub(super) static RULE: Rule = Rule {
    code: "export-of-import",
    severity: Severity::Error,
    when: When::Enter,
    title: "a get of an event or of memory that was opened from another process",
    sentence: "got handle data for {what} that it had opened from another process",
    facts: &[FactKind::Exporting],
    check: Check::Stateless(check),
};

const FORWARD: &str = "forward the bytes that were received instead";

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Exporting(exporting) = fact.what else { return None };
    let (what, object) = match exporting.source {
        Source::Object(what, object) => (what, object),
        Source::Mapping(base, opened) => return mapping(fact, base, opened),
        _ => return None,
    };
    if what.kind != Kind::Event || object.origin != Origin::Imported {
        return None;
    }
    let who = fact.actor();
    let at = call(fact.at);
    let message = format!("{who} gets handle data in {at} for {what}, which it opened in {}", call(object.born));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(object.born));
    Some(finding.advice(FORWARD).answer(ResultCode::INVALID_EVENT))
}

fn mapping(fact: &Fact<'_>, base: u64, mapped: &Mapping) -> Option<Finding> {
    let opened = mapped.first_open()?;
    let what = handle(Kind::Mapping, base);
    let who = fact.actor();
    let at = call(fact.at);
    let size = of_size(mapped.size);
    let message = format!("{who} gets handle data in {at} for {what}{size}, which it opened in {}", call(opened));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(opened));
    let finding = finding.values(mapped.size, mapped.fingerprint).at_most(Severity::Note);
    Some(finding.advice(FORWARD).answer(ResultCode::INVALID_ARGUMENT))
}
