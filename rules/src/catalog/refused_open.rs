//! # What it does
//!
//! Reports an open of handle data of a traced process that was refused, where no other rule explains the refusal.
//!
//! # Why it is bad
//!
//! The consumer does not get the memory. The bytes are those of a get, so the reason lies elsewhere:
//! the exporter has ended, the two processes use different adapters, or the device or the context of
//! the open is another one. The note says what is known: it names both devices where their processes
//! describe them otherwise. (An index counts the devices that its process sees.)
//!
//! # Example
//!
//! The exporter, at its end:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! // Wrong: the other process may open later.
//! std::_Exit(0);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! std::_Exit(0);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! receive(handle);
//! barrier();
//! // Wrong: the exporter ends behind the barrier.
//! cuIpcOpenMemHandle(&p, handle,
//!                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m fails
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
//! Let the exporter live until all processes have opened, and let all of them use the same adapter and
//! device. The adapter logs the reason with `UR_LOG_LEVEL_ZERO=level:debug;output:stderr`.

use urscope_schema::api::{Promise, ResultCode};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{counted, operation::Open};

use super::wording::{call, device, name, used_before_fork, which};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, What};
use crate::tracker::{End, ProcessId, exports::Export};

pub(super) static RULE: Rule = Rule {
    code: "refused-open",
    severity: Severity::Note,
    when: When::Exit,
    title: "an open of valid handle data was refused, and nothing explains it",
    sentence: "was refused an open of valid handle data",
    facts: &[FactKind::CallFailed],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::CallFailed(refused) = fact.what else { return None };
    let (open, known) = refused.call.open()?;
    let export = fact.tracker.exports.get(known.export?)?;
    let kind = open.of;
    let meaning = fact.at.meaning(refused.result);
    // A null argument, which the record need not show.
    if open.imports || [ResultCode::INVALID_NULL_POINTER, ResultCode::INVALID_NULL_HANDLE].contains(&meaning) {
        return None;
    }
    let producer = export.latest_get.process;
    if producer == fact.at.process && kind == Kind::MemHandle && fact.at.promises(Promise::OwnOpensAreRefused) {
        return None;
    }
    let what = Handle { kind, value: open.data.unwrap_or_default() };
    let known = match fact.tracker.state(producer)?.ended {
        _ if producer == fact.at.process => "it was exported by the same process".into(),
        Some((End::Killed, _)) => format!("its exporter, {}, had been killed", name(fact.tracker, producer)),
        Some((End::Exec, _)) => format!("its exporter, {}, had become another program", name(fact.tracker, producer)),
        Some(_) => format!("its exporter, {}, had ended", name(fact.tracker, producer)),
        None => format!("its exporter, {}, was there{}", name(fact.tracker, producer), namespaces(fact, producer)),
    };
    let forked = used_before_fork(fact, refused.result);
    let put = export.gets.saturating_sub(export.handles);
    let reason = match meaning {
        _ if let Some((why, _)) = &forked => format!("; {why}"),
        _ if kind == Kind::PhysicalMemHandle && put > 0 => format!(
            "; {} with the same bytes had been put, and the put of the v2 adapter closes the descriptor that they name",
            counted(put, "handle")
        ),
        _ if let Some((theirs, ours)) = other_adapter(fact, producer) => {
            format!("; the exporter's adapter is {theirs}, and that of this process is {ours}")
        }
        ResultCode::INVALID_VALUE if open.size.is_some() => {
            "; an adapter returns this for handle data of another adapter, or of another size".to_owned()
        }
        _ => String::new(),
    };
    let message = format!(
        "{} opens {what} in {}, {}; the bytes are those of {}; {known}{reason}{}",
        fact.actor(),
        call(fact.at),
        which(fact.at, Outcome::Refused(refused.result)),
        fact.place(export.latest_get),
        other_device(fact, export, open).unwrap_or_default(),
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(export.latest_get));
    let advice = forked.map_or_else(
        || {
            format!(
                "keep the exporter alive until all have opened, open on the exporter's device, and {}",
                fact.at.words().reason
            )
        },
        |(_, advice)| advice,
    );
    Some(finding.values(open.size, open.fingerprint).advice(advice))
}

/// What different PID namespaces of exporter and consumer do to handle data, which name the exporter by its pid.
fn namespaces(fact: &Fact<'_>, producer: ProcessId) -> String {
    let (Some(theirs), Some(ours)) = (fact.tracker.process(producer), fact.tracker.process(fact.at.process)) else {
        return String::new();
    };
    if !ours.rights.is_elsewhere(&theirs.rights) {
        return String::new();
    }
    if ours.pid == theirs.pid {
        return format!(
            ", in another PID namespace: both are process {} there, so that the handle data seem to be this process's own",
            ours.pid
        );
    }
    ", in another PID namespace, so that its pid is that of another process or of none here".to_owned()
}

/// The adapters of the exporter and of the process that opens, if each has one and they differ.
fn other_adapter<'t>(fact: &Fact<'t>, producer: ProcessId) -> Option<(&'t str, &'t str)> {
    let adapter = |who| fact.tracker.state(who)?.only_adapter();
    let adapters = (adapter(producer)?, adapter(fact.at.process)?);
    (adapters.0 != adapters.1).then_some(adapters)
}

/// The device of the exported object, and that of the open, or of its context, if their processes
/// describe them and differ in it. Handles of two processes say nothing.
fn other_device(fact: &Fact<'_>, export: &Export, open: &Open) -> Option<String> {
    let producer = export.latest_get.process;
    let consumer = fact.at.process;
    let of_context = |who: ProcessId, context: Option<u64>| {
        fact.tracker.state(who)?.contexts.get(&context?).and_then(|it| it.device)
    };
    let theirs = export.subject.device.filter(|_| producer != consumer)?;
    let (ours, says) = match open.device {
        Some(device) => (device, "the open names"),
        None => (of_context(consumer, open.context)?, "the context of the open has only"),
    };
    let described = |who: ProcessId, handle: u64| {
        let is_known = fact.tracker.state(who)?.devices.contains_key(&handle);
        is_known.then(|| device(fact.tracker, who, handle))
    };
    let theirs = described(producer, theirs)?;
    let ours = described(consumer, ours)?;
    let of = if open.makes == Kind::Mapping { "the memory" } else { "the exported object" };
    (theirs != ours).then(|| format!("; {of} is on {theirs} of its process, and {says} {ours} of this one"))
}
