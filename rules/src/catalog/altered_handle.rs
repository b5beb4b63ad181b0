//! # What it does
//!
//! Reports handle data that is opened and that no get returned as it is: a few bytes differ from those of a get, or all
//! are zero.
//!
//! # Why it is bad
//!
//! The bytes were changed on their way, or never filled in. An adapter does not notice every change: the open succeeds
//! and maps other memory, or the same memory from another address on, and the process reads wrong data. The message
//! names the get of the bytes and the first byte that differs.
//!
//! It is a note if the process that got the bytes was not traced from its start: a get before may have returned these.
//! So are zeros that are refused for another reason than the bytes, as by an adapter that shares no such object. Zeros
//! in the place of what a get was refused before are reported at that get, by [`refused-call`](#refused-call).
//!
//! # Example
//!
//! The process that opens:
//!
//! ```cpp
//! auto data = receive();
//! // Wrong: handle data is no text.
//! data.back() = std::byte(0);
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! receive(handle);
//! // Wrong: all 64 bytes are the driver's.
//! handle.reserved[63] = 0;
//! cuIpcOpenMemHandle(&p, handle,
//!                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h flipped 33 -> m
//! consumer: close m
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
//! Send handle data as bytes, all of them, and open it when they have arrived. The v1 adapter writes its own descriptor
//! into bytes that it opens: open a copy, and send the original on. (urscope gives that adapter a copy.)

use urscope_schema::handle::Kind;
use urscope_schema::operation::{Export, Operation};

use super::memory::{FirstOf, PerProcess, UnknownOpens, is_damaged, is_for_bytes};
use super::wording::{call, name, one, times, which};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Altered, Fact, FactKind, Refused, UnknownHandle, What};
use crate::tracker::{ProcessId, Tracker};

pub(super) static RULE: Rule = Rule {
    code: "altered-handle",
    severity: Severity::Error,
    when: When::Run,
    title: "handle data is opened that was changed on its way, or never filled in",
    sentence: "opened handle data that was changed on its way, or never filled in",
    facts: &[FactKind::OpenedUnknown, FactKind::Refused, FactKind::CallsMissing, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Damaged::default())),
};

#[derive(Clone, Debug, Default)]
struct Damaged {
    /// The opens of such bytes, by process.
    opens: UnknownOpens,
    /// The first get of each kind that each process was refused.
    refused: PerProcess<Vec<(Kind, Place)>>,
}

impl RuleState for Damaged {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::OpenedUnknown(unknown) if is_damaged(unknown) => self.opens.count(fact.at, *unknown),
            What::OpenedUnknown(_) => {}
            What::Refused(Refused { call, .. }) => {
                if let Operation::Export(Export { kind, .. }) = call.operation {
                    let refused = self.refused.get_or_insert_with(fact.at.process, Vec::new);
                    if refused.iter().all(|(known, _)| *known != kind) {
                        refused.push((kind, fact.at));
                    }
                }
            }
            _ => {
                let refused = &self.refused;
                let first = self.opens.at_end(fact).filter(|first| !is_of_refused_get(fact.tracker, first, refused));
                found.extend(first.map(|first| report(fact.tracker, first)));
            }
        }
    }
}

/// Whether bytes are zero because a get was refused that should have filled them in.
fn is_of_refused_get(
    tracker: &Tracker,
    unknown: &FirstOf<(Place, UnknownHandle)>,
    refused: &PerProcess<Vec<(Kind, Place)>>,
) -> bool {
    let (at, bytes) = &unknown.first;
    let on_host = tracker.on_host_of(at.process);
    let is_it = |(kind, get): &(Kind, Place)| {
        Some(*kind) == bytes.handle.kind.shares() && get.time < at.time && on_host.contains(&get.process)
    };
    bytes.altered.is_none() && refused.iter().flatten().any(is_it)
}

fn report(tracker: &Tracker, unknown: &FirstOf<(Place, UnknownHandle)>) -> Finding {
    let FirstOf { first: (at, bytes), count } = *unknown;
    let who = name(tracker, at.process);
    let what = one(bytes.handle.kind);
    let which = which(at, bytes.outcome);
    let first = if count > 1 { ", first" } else { "" };
    let size = bytes.size.map(|size| format!("{size} "));
    let size = size.unwrap_or_default();
    let times = times(count);
    let opens = format!("{who} opened {size}bytes as {what} {times}{first} in {}, {which}", call(at));
    let finding = |why: &str| {
        Finding::new(&RULE, at, bytes.handle, format!("{opens}: {why}")).values(None, Some(bytes.fingerprint))
    };
    let Some(altered) = bytes.altered else {
        let advice = "open handle data when it has arrived, and check the result of the get that makes it";
        let zeros = finding("all of them are zero, so they were never filled in").advice(advice);
        return zeros.at_most(if is_for_bytes(at, bytes.outcome) { Severity::Error } else { Severity::Note });
    };
    let finding = finding(&change(tracker, &altered)).other(Some(altered.got)).advice(at.words().changed_bytes);
    let late = tracker.process(altered.got.process).is_some_and(|of| of.forked_from == Some(ProcessId::UNKNOWN));
    finding.at_most(if late { Severity::Note } else { Severity::Error })
}

/// How bytes differ from those of their get, in words.
fn change(tracker: &Tracker, altered: &Altered) -> String {
    let Altered { got, value, first, length } = *altered;
    let of = value.map_or_else(String::new, |value| format!(" for {value:#x}"));
    let bytes = if length == 1 { format!("byte {first}") } else { format!("bytes {first} to {}", first + length - 1) };
    format!(
        "they differ in {bytes} (counted from 0) from the handle data that {} got{of} in {}: they were changed on their way",
        name(tracker, got.process),
        call(got)
    )
}
