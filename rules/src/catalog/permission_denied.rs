//! # What it does
//!
//! Reports an open that was refused although its bytes belong to a live get, if the recorded properties of the two
//! processes show the reason: different pid namespaces, different users, a producer that is not dumpable, Yama's
//! `ptrace_scope`, or a filter of system calls.
//!
//! # Why it is bad
//!
//! Level Zero puts a file descriptor into its handle data, which the consumer fetches from the producer
//! (`pidfd_getfd(2)`). The kernel demands the right to trace the producer for that. Without it the adapters return
//! `UR_RESULT_ERROR_INVALID_ARGUMENT`, or `UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY` for an event; the v1 adapter returns
//! success and no result. None of these results states what is missing. If the producer or a filter may have allowed it
//! all the same, it is a note.
//!
//! # Example
//!
//! The exporter, on a machine where `kernel.yama.ptrace_scope` is 1:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! // Wrong: the other process has no access.
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: uid 1000
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: uid 1001
//! consumer: traces-any 0
//! consumer: open h -> m fails
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! Two processes of one user.
//!
//! ```text
//! producer: uid 1000
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: uid 1000
//! consumer: traces-any 0
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Run both processes as one user in one pid namespace (`docker run --pid=host`, or both in one container). Under Yama
//! the producer calls `prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY)`, or the administrator sets `kernel.yama.ptrace_scope`
//! to 0. A container whose filter forbids `pidfd_getfd` needs `--cap-add=SYS_PTRACE`. `urscope doctor` tests it on this
//! machine.

use urscope_schema::api::{Promise, ResultCode};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::Open;

use super::wording::{call, which};
use super::{Check, Rule, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::Barrier;
use crate::tracker::fact::{Fact, FactKind, Outcome, Refused, What};

pub(super) static RULE: Rule = Rule {
    code: "permission-denied",
    severity: Severity::Warning,
    when: When::Exit,
    title: "an open was refused because the kernel does not let the consumer access the producer",
    sentence: "was not permitted to open memory of {other}",
    facts: &[FactKind::Refused],
    check: Check::Stateless(check),
};

/// The results of an open if the kernel refuses to duplicate a descriptor; and success without a result.
const KERNEL_REFUSED: [ResultCode; 4] = [
    ResultCode::INVALID_OPERATION,
    ResultCode::OUT_OF_DEVICE_MEMORY,
    ResultCode::INVALID_ARGUMENT,
    ResultCode::SUCCESS,
];

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Refused(refused) = fact.what else { return None };
    let (open, known) = refused.call.open()?;
    let kind = refused.opens?;
    let Some(export) = known.export else { return not_fetched(fact, &refused, open) };
    let export = fact.tracker.exports.get(export)?;
    let producer = fact.tracker.state(export.latest_get.process)?;
    let consumer = fact.tracker.state(fact.at.process)?;
    let alive = match (kind, export.subject.value, export.subject.serial) {
        (Kind::MemHandle, Some(pointer), Some(serial)) => producer.is_allocated(pointer, serial),
        _ => true,
    };
    let is_fetched =
        export.latest_get.process != fact.at.process && export.handles > 0 && alive && producer.ended.is_none();
    let barrier = consumer.process.rights.barrier(&producer.process.rights)?;
    if !is_fetched || !KERNEL_REFUSED.contains(&fact.at.meaning(refused.result)) {
        return None;
    }
    let what = Handle { kind, value: open.data.unwrap_or_default() };
    let who = fact.actor();
    let at = call(fact.at);
    let message = format!(
        "{who} opens {what} in {at}, {}, although it is live handle data of {}: {}",
        which(fact.at, Outcome::Refused(refused.result)),
        fact.place(export.latest_get),
        cause(barrier)
    );
    let most = if barrier.is_certain() { Severity::Error } else { Severity::Note };
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(export.latest_get)).at_most(most);
    Some(finding.values(None, Some(export.fingerprint())).advice(advice(barrier)))
}

/// An open by Level Zero whose descriptor is not one of this process: the application has not fetched it. The get of
/// the handle is unknown, so it is reported only if the process cannot fetch from any process that exports.
fn not_fetched(fact: &Fact<'_>, refused: &Refused<'_>, open: &Open) -> Option<Finding> {
    let is_refused = KERNEL_REFUSED.contains(&fact.at.meaning(refused.result));
    if !fact.at.promises(Promise::HandlesAreDescriptors)
        || !is_refused
        || open.fingerprint.is_some()
        || refused.opens? != Kind::MemHandle
    {
        return None;
    }
    let consumer = fact.tracker.state(fact.at.process)?;
    let mut latest: Option<(Place, Barrier)> = None;
    for export in fact.tracker.exports.iter() {
        let producer = fact.tracker.state(export.latest_get.process)?;
        let counts = export.latest_get.process != fact.at.process
            && export.host() == consumer.process.host
            && export.subject.kind == Kind::MemHandle
            && export.handles > 0
            && producer.ended.is_none();
        if counts {
            let barrier = consumer.process.rights.barrier(&producer.process.rights)?;
            let order = |at: &Place| (at.time, at.process, at.call);
            if latest.is_none_or(|(got, _)| order(&got) < order(&export.latest_get)) {
                latest = Some((export.latest_get, barrier));
            }
        }
    }
    let (got, barrier) = latest?;
    let what = Handle { kind: Kind::MemHandle, value: open.data.unwrap_or_default() };
    let message = format!(
        "{} opens {what} in {}, {}: its descriptor is none of this process, and could not be fetched from the exporter (the latest get is \
         {}): {}",
        fact.actor(),
        call(fact.at),
        which(fact.at, Outcome::Refused(refused.result)),
        fact.place(got),
        cause(barrier)
    );
    let most = if barrier.is_certain() { Severity::Warning } else { Severity::Note };
    Some(Finding::new(&RULE, fact.at, what, message).other(Some(got)).at_most(most).advice(advice(barrier)))
}

fn cause(barrier: Barrier) -> String {
    match barrier {
        Barrier::PidNamespaces => {
            "the two processes are in different pid namespaces, where a pid names another process".into()
        }
        Barrier::Users(producer, consumer) => {
            format!("the producer is user {producer}, the consumer user {consumer} without CAP_SYS_PTRACE")
        }
        Barrier::Undumpable => {
            "the producer is not dumpable (PR_SET_DUMPABLE), and the consumer has no CAP_SYS_PTRACE".into()
        }
        Barrier::Yama(scope @ 3..) => {
            format!("kernel.yama.ptrace_scope is {scope}, which forbids it for all processes")
        }
        Barrier::Yama(1) => "kernel.yama.ptrace_scope is 1: without CAP_SYS_PTRACE a process can access only its \
                             descendants, and processes that allow it with PR_SET_PTRACER"
            .into(),
        Barrier::Yama(scope) => {
            format!("kernel.yama.ptrace_scope is {scope}, and the consumer has no CAP_SYS_PTRACE")
        }
        Barrier::Seccomp => {
            "the consumer's system calls are filtered (seccomp), and without CAP_SYS_PTRACE the filters \
                             of containers forbid pidfd_getfd"
                .into()
        }
    }
}

const fn advice(barrier: Barrier) -> &'static str {
    match barrier {
        Barrier::PidNamespaces => "run both in one pid namespace: one container, or --pid=host",
        Barrier::Users(..) => "run both as one user, or give the consumer CAP_SYS_PTRACE",
        Barrier::Undumpable => "leave the producer dumpable, or give the consumer CAP_SYS_PTRACE",
        Barrier::Yama(1) => {
            "call prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) in the producer, or set kernel.yama.ptrace_scope to 0"
        }
        Barrier::Yama(_) => "set kernel.yama.ptrace_scope to 0 or 1",
        Barrier::Seccomp => "give the container CAP_SYS_PTRACE, or a filter that allows pidfd_getfd",
    }
}
