//! # What it does
//!
//! Reports an open that was refused and whose bytes no get of a traced process returned.
//!
//! # Why it is bad
//!
//! The bytes were damaged in transit, were never handle data, or come from a process that is not
//! traced. The specification guarantees nothing for such bytes: one adapter refuses them, another opens
//! what they happen to name. It is a note, because a trace cannot show which of the three cases it is.
//! (Where only a few bytes differ from those of a get, or all are zero, the rule
//! [`altered-handle`](#altered-handle) reports it.)
//! If the bytes name memory that a traced process exported, the message says so: they were changed on
//! their way. Otherwise it says what else is known of them: that gets return another size, or which
//! process their header names. The v1 adapter overwrites the descriptor in bytes that it opens.
//!
//! # Example
//!
//! The process that opens, where a message comes in the background:
//!
//! ```cpp
//! ipc::handle_data_t data(length);
//! auto message = std::async([&] {
//!   data = receive();
//! });
//! // Wrong: the bytes may not be here yet.
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! ipc::handle_data_t data(length);
//! auto message = std::async([&] {
//!   data = receive();
//! });
//! message.wait();
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
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
//! Compare what was sent with what was received, byte by byte and in length: the trace of the sender contains the
//! fingerprint of the get. If the sender was not traced, trace it.

use urscope_schema::api::ResultCode;

use super::memory::{FirstOf, UnknownOpens, changed, depends_on_bytes, either, is_damaged};
use super::wording::{call, name, one, result_text, times};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, UnknownHandle, What};
use crate::tracker::{ProcessId, Tracker};

pub(super) static RULE: Rule = Rule {
    code: "garbage-handle",
    severity: Severity::Note,
    when: When::Run,
    title: "an open was refused, and no traced get returned its bytes",
    sentence: "was refused an open of bytes that no traced get had returned",
    facts: &[FactKind::OpenedUnknown, FactKind::CallsMissing, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Refusals::default())),
};

/// The refused opens of each process, and those that returned success and no result.
#[derive(Clone, Debug, Default)]
struct Refusals {
    refused: UnknownOpens,
    silent: UnknownOpens,
}

impl RuleState for Refusals {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        let What::OpenedUnknown(unknown) = fact.what else {
            found.extend(self.refused.at_end(fact).filter_map(|first| report(fact.tracker, first)));
            // That it failed has a rule of its own, but not that the bytes were changed.
            let changed = |first: &&FirstOf<_>| changed(fact.tracker, first).is_some();
            found.extend(self.silent.at_end(fact).filter(changed).filter_map(|first| report(fact.tracker, first)));
            return;
        };
        let Outcome::Refused(result) = unknown.outcome else { return };
        if is_damaged(unknown) {
            return;
        }
        if result.is_success() {
            self.silent.count(fact.at, *unknown);
        } else if depends_on_bytes(fact.at.meaning(result)) && !is_of_other_size(fact, unknown, result) {
            self.refused.count(fact.at, *unknown);
        }
    }
}

/// Whether the size is the reason, which has a rule of its own.
fn is_of_other_size(fact: &Fact<'_>, unknown: &UnknownHandle, result: ResultCode) -> bool {
    let given = || fact.tracker.other_size(fact.at.process, unknown.handle.kind, unknown.size?);
    result == ResultCode::INVALID_VALUE && given().is_some()
}

fn report(tracker: &Tracker, unknown: &FirstOf<(Place, UnknownHandle)>) -> Option<Finding> {
    let FirstOf { first: (at, handle), count } = *unknown;
    let Outcome::Refused(result) = handle.outcome else { return None };
    let changed = changed(tracker, unknown);
    let who = name(tracker, at.process);
    let what = one(handle.handle.kind);
    let first = if count > 1 { ", the first time" } else { "" };
    let which = either(tracker, &handle);
    let which = which.as_deref().unwrap_or("that no traced process of this host got");
    let message = format!(
        "{who} tried {} to open bytes as {what} {which}; the open was refused{first} in {}, which \
         returned {}{}",
        times(count),
        call(at),
        result_text(at, result),
        changed.as_ref().map_or_else(|| difference(tracker, at.process, &handle), |(_, text)| text.clone())
    );
    let advice = match changed {
        Some(_) => at.words().changed_bytes,
        None => "compare what was sent with what was received; if its sender was not traced, trace it",
    };
    let finding = Finding::new(&RULE, at, handle.handle, message).advice(advice);
    Some(finding.other(changed.map(|(got, _)| got)).values(None, Some(handle.fingerprint)))
}

/// Linux gives no process a number from here on (`PID_MAX_LIMIT`).
const PID_MAX_LIMIT: u64 = 1 << 22;

/// How bytes that name no exported memory differ from handle data of the same kind, in words; empty if
/// that is not known.
fn difference(tracker: &Tracker, who: ProcessId, unknown: &UnknownHandle) -> String {
    if let Some(size) = unknown.size
        && let Some(given) = tracker.other_size(who, unknown.handle.kind, size)
    {
        let of = name(tracker, given.got.process);
        return format!("; they are {size} bytes, and a get of {of} returned {}, in {}", given.size, call(given.got));
    }
    let Some((pid, address)) = unknown.named else { return String::new() };
    if pid == 0 || pid >= PID_MAX_LIMIT {
        return format!("; they name {pid} as the process that exported them, and no process has that number");
    }
    match tracker.process_with_pid(who, pid) {
        Some(named) => {
            let of = name(tracker, named);
            format!("; they name {address:#x} of {of}, which got no handle data of memory there")
        }
        None => format!("; they name process {pid}, which was not traced"),
    }
}
