//! # What it does
//!
//! Reports a get, put, open, close, free, map, unmap or release that returned an error, where no other rule explains
//! it.
//!
//! # Why it is bad
//!
//! The program does not have what it asked for, or still holds what it wanted to give back. The message says what is
//! known of the reason: the context of the call was released before, the address lies in mapped physical memory, or the
//! memory comes from a pool. It is a note, because a program may try what is not supported, and go another way. It is a
//! warning if the program goes on with a result that it does not have and passes null in its place, and an error if the
//! bytes that the get has not filled in are opened: then the process that opens them is not at fault.
//!
//! # Example
//!
//! The exporter, by Level Zero:
//!
//! ```cpp
//! ze_ipc_mem_handle_t handle;
//! zeMemGetIpcHandle(ze_ctx, p, &handle);
//! send(bytes_of(handle));
//! barrier();
//! zeContextDestroy(ze_ctx);
//! // Wrong: the context is gone.
//! zeMemPutIpcHandle(ze_ctx, handle);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! ze_ipc_mem_handle_t handle;
//! zeMemGetIpcHandle(ze_ctx, p, &handle);
//! send(bytes_of(handle));
//! barrier();
//! zeMemPutIpcHandle(ze_ctx, handle);
//! zeContextDestroy(ze_ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! cuMemAlloc(&p, size);
//! // Wrong: no context is current in the new thread.
//! std::thread([&] { cuIpcGetMemHandle(&handle, p); }).join();
//! send(handle);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc
//! producer: map m -> v
//! producer: get v -> h fails
//! consumer: open zeros -> n fails
//! ```
//!
//! # Good trace
//!
//! What is mapped is shared as physical memory.
//!
//! ```text
//! producer: physical m ipc
//! producer: map m -> v
//! producer: get-physical m -> h
//! consumer: open-physical h -> n
//! consumer: close-physical n
//! producer: put-physical h
//! producer: unmap v
//! producer: release-physical m
//! ```
//!
//! # What to do
//!
//! Check the result of the call. End what belongs to a context before the context. Get handle data for what can be
//! shared: device memory that is not from a pool, or physical memory itself instead of an address that it is mapped at.

use urscope_schema::api::{ResultCode, demand::Wrong};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{Export, Free, Open, Operation};

use super::memory::{PerProcess, depends_on_bytes, is_all_zero, is_for_bytes};
use super::wording::{call, name, result_text, used_before_fork};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::ProcessId;
use crate::tracker::fact::{CallFailed, Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "refused-call",
    severity: Severity::Error,
    when: When::Run,
    title: "a call was refused, and nothing else explains it",
    sentence: "was refused a call",
    facts: &[FactKind::CallFailed, FactKind::InvalidArgument, FactKind::OpenedUnknown, FactKind::Finished],
    check: Check::Stateful(|| Box::new(Refusals::default())),
};

/// The number of places in a program whose refused calls are reported.
const MAX_PLACES: usize = 256;

/// The refused calls of each process, one for each place in the program.
#[derive(Clone, Debug, Default)]
struct Refusals(PerProcess<Vec<Refusal>>);

#[derive(Clone, Debug)]
struct Refusal {
    finding: Finding,
    /// The kind of what is shared, if the call was to get or open it.
    shares: Option<Kind>,
    goes_on: Option<GoesOn>,
}

/// What a program does without the result of a refused call.
#[derive(Clone, Debug)]
struct GoesOn {
    what: String,
    severity: Severity,
    at: Place,
}

impl RuleState for Refusals {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::CallFailed(failed) => self.refused(fact, &failed),
            What::InvalidArgument(fault) => {
                let effect = fact.at.effect().filter(|effect| effect.is_ipc());
                if let Some(effect) = effect.filter(|_| fault.why == Wrong::Null) {
                    let what = format!("the process then passes null in {}", call(fact.at));
                    let how = GoesOn { what, severity: Severity::Warning, at: fact.at };
                    self.go_on(&[fact.at.process], effect.kind(), &how);
                }
            }
            What::OpenedUnknown(unknown) if is_all_zero(unknown) => {
                let Some(kind) = unknown.handle.kind.shares() else { return };
                let what = format!("{} then opens zeros in {}", fact.actor(), call(fact.at));
                let is_error = is_for_bytes(fact.at, unknown.outcome);
                let severity = if is_error { Severity::Error } else { Severity::Warning };
                let how = GoesOn { what, severity, at: fact.at };
                self.go_on(&fact.tracker.on_host_of(fact.at.process), kind, &how);
            }
            What::Finished => found.extend(self.0.iter().flatten().map(Refusal::report)),
            _ => {}
        }
    }
}

impl Refusals {
    fn refused(&mut self, fact: &Fact<'_>, failed: &CallFailed<'_>) {
        let Some((does, what)) = act(fact, failed) else { return };
        let known = self.0.get_or_insert_with(fact.at.process, Vec::new);
        let is_here = |at: &Place| (at.function, at.stack) == (fact.at.function, fact.at.stack);
        if let Some(same) = known.iter_mut().find(|same| is_here(&same.finding.at)) {
            same.finding.count += 1;
        } else if known.len() < MAX_PLACES {
            let shares = match failed.call.operation {
                Operation::Export(Export { kind, .. }) => Some(kind),
                Operation::Open(open) => open.of.shares(),
                _ => None,
            };
            known.push(Refusal { finding: finding(fact, failed, does, what), shares, goes_on: None });
        }
    }

    /// A process goes on without a result of this kind: one of these processes was refused it.
    fn go_on(&mut self, who: &[ProcessId], kind: Kind, how: &GoesOn) {
        for who in who {
            let of_process = self.0.get_mut(*who).into_iter().flatten();
            if let Some(refusal) = of_process.rev().find(|refusal| refusal.shares == Some(kind)) {
                refusal.goes_on.get_or_insert_with(|| how.clone());
            }
        }
    }
}

impl Refusal {
    fn report(&self) -> Finding {
        let finding = self.finding.clone();
        match &self.goes_on {
            None => finding.at_most(Severity::Note),
            Some(GoesOn { what, severity, at }) => {
                let other = finding.other.or(Some(*at));
                Finding { message: format!("{}; {what}", finding.message), other, ..finding }.at_most(*severity)
            }
        }
    }
}

/// What a call was to do, and with what. An open of bytes whose origin is known, or that may be damaged, has other
/// rules.
fn act(fact: &Fact<'_>, failed: &CallFailed<'_>) -> Option<(&'static str, Handle)> {
    let of = |kind, value: Option<u64>| Some(Handle { kind, value: value.filter(|value| *value != 0)? });
    let (does, what) = match failed.call.operation {
        Operation::Export(Export { kind, pointer, object, .. }) => {
            let address = pointer.map(|pointer| Handle { kind, value: pointer });
            ("gets handle data for", address.or(of(kind, object)))
        }
        Operation::Put(handle, _) => ("puts", Some(handle)),
        Operation::Open(Open { of: kind, data, imports, fingerprint, .. }) => {
            let (_, known) = failed.call.open()?;
            let is_other =
                known.export.is_some() || fingerprint.is_some() && depends_on_bytes(fact.at.meaning(failed.result));
            if is_other && !imports {
                return None;
            }
            (if imports { "imports" } else { "opens" }, of(kind, data))
        }
        Operation::Close(Free { pointer, .. }) => ("closes", of(Kind::Mapping, pointer)),
        Operation::Free(Free { pointer, .. }) => ("frees", of(Kind::Usm, pointer)),
        Operation::Release(kind, object) => ("releases", of(kind, object)),
        Operation::Destroy(kind, object) => {
            (if fact.at.effect()?.is_ipc() { "closes" } else { "destroys" }, of(kind, object))
        }
        Operation::Map { memory, .. } => ("maps", of(Kind::PhysicalMem, Some(memory))),
        Operation::Unmap { from: Free { pointer, .. }, .. } => ("unmaps", of(Kind::Mapping, pointer)),
        _ => return None,
    };
    Some((does, what?))
}

fn finding(fact: &Fact<'_>, failed: &CallFailed<'_>, does: &str, what: Handle) -> Finding {
    let known = reason(fact, failed);
    let (why, other, advice) = known.unwrap_or_else(|| {
        let advice = format!("check its result, and {}", fact.at.words().reason);
        ("the reason is not known".into(), None, advice)
    });
    let shown = if does == "unmaps" { format!("{:#x}", what.value) } else { what.to_string() };
    let who = name(fact.tracker, fact.at.process);
    let at = call(fact.at);
    let message =
        format!("{who} {does} {shown} in {at}, which returned {}: {why}", result_text(fact.at, failed.result));
    Finding::new(&RULE, fact.at, what, message).other(other).advice(advice)
}

/// What is known of the reason: in words, the call that it comes from, and what to do.
fn reason(fact: &Fact<'_>, failed: &CallFailed<'_>) -> Option<(String, Option<Place>, String)> {
    let state = fact.tracker.state(fact.at.process)?;
    if let Some((why, advice)) = used_before_fork(fact, failed.result) {
        return Some((why, None, advice));
    }
    let context = failed.call.operation.context();
    let gone = context.and_then(|value| state.tombstones.get(Handle { kind: Kind::Context, value }));
    if let Some(gone) = gone {
        let why = format!("its context was released in {}", call(gone.died));
        return Some((why, Some(gone.died), "end what belongs to a context before the context".into()));
    }
    if let Operation::Close(Free { pointer: Some(pointer), .. }) | Operation::Free(Free { pointer: Some(pointer), .. }) =
        failed.call.operation
        && let Some(gone) = state.tombstones.get(Handle { kind: Kind::Mapping, value: pointer })
        && gone.died.effect().is_some_and(|effect| effect.kind() == Kind::Context)
    {
        let why = format!("the context that it was in was ended in {}", call(gone.died));
        return Some((why, Some(gone.died), "close what was opened before its context ends".into()));
    }
    let Operation::Export(Export { kind, pointer, .. }) = failed.call.operation else { return None };
    if context.is_none() && fact.at.meaning(failed.result) == ResultCode::INVALID_CONTEXT {
        let born = pointer.and_then(|pointer| state.allocation_at(pointer)).and_then(|(_, memory)| memory.born);
        let elsewhere = born.filter(|born| born.tid != fact.at.tid);
        let allocated = elsewhere.map_or_else(String::new, |born| {
            format!("; thread {} had one in {}, which allocated it", born.tid, call(born))
        });
        let why = format!("no context is current in thread {}{allocated}", fact.at.tid);
        return Some((why, elsewhere, "make the context of the memory current in the thread that calls".into()));
    }
    let (Kind::Usm, Some(pointer)) = (kind, pointer) else { return None };
    if let Some(mapped) = state.mapped.at(pointer) {
        let why = format!("the address lies in {}, which was mapped there in {}", mapped.memory, call(mapped.place));
        return Some((why, Some(mapped.place), "get handle data for the physical memory itself".into()));
    }
    let Some((_, memory)) = state.allocation_at(pointer) else {
        let advice = "get handle data for device memory".into();
        return Some(("no recorded call has allocated it".into(), None, advice));
    };
    let pool = memory.requested.pool?;
    let why = format!("it comes from USM pool {pool:#x}");
    Some((why, memory.born, "allocate what is to be shared outside of a pool".into()))
}
