//! # What it does
//!
//! Reports memory that is opened in the process that exported it, once per process.
//!
//! # Why it is bad
//!
//! Level Zero allows it: the mapping is a second address of the same memory. But the mapping needs a close of its own,
//! and it costs as much as any mapping although the memory is already accessible. CUDA refuses it. (Events and physical
//! memory are left out.)
//!
//! # Example
//!
//! A process that shares with itself, as a rank that is its own neighbour:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! auto data = handle.data();
//! // Noted: p is the same memory.
//! void *same = ipc::memory::open(data, ctx, dev);
//! queue.memset(same, 0, size).wait();
//! ipc::memory::close(same, ctx);
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! queue.memset(p, 0, size).wait();
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: open h -> m
//! producer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A forked child is another process.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: fork consumer
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Compare the sender of the bytes with the own process, and use the existing pointer. If it is intended, as in a test,
//! suppress it.

use urscope_schema::api::{Promise, ResultCode};
use urscope_schema::handle::Kind;

use super::memory::{FirstOf, PerProcess};
use super::wording::{call, handle, of_size, times, which};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, What};
use crate::tracker::{End, ExportId};

pub(super) static RULE: Rule = Rule {
    code: "open-in-producer",
    severity: Severity::Note,
    when: When::End,
    title: "memory is opened in the process that exported it",
    sentence: "opened {what} that it had exported itself",
    facts: &[FactKind::Opened, FactKind::CallFailed, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(OwnOpens::default())),
};

/// The opens of each process of memory that it exported itself.
#[derive(Clone, Debug, Default)]
struct OwnOpens(PerProcess<FirstOf<OwnOpen>>);

/// An open of memory that the process exported itself.
#[derive(Clone, Copy, Debug)]
struct OwnOpen {
    opened: Place,
    /// Its mapping, or the result of an open that was refused.
    made: Result<u64, ResultCode>,
    got: Place,
    size: Option<u64>,
    fingerprint: u64,
}

impl RuleState for OwnOpens {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Opened(opened) => {
                let mapping = opened.handle.kind == Kind::Mapping;
                let own = own(fact, opened.export.filter(|_| mapping), Ok(opened.handle.value));
                own.inspect(|own| self.0.count(fact.at.process, || *own));
            }
            What::CallFailed(failed) if fact.at.promises(Promise::OwnOpensAreRefused) => {
                let Some((_, known)) = failed.call.open() else { return };
                let own = own(fact, known.export, Err(failed.result));
                own.inspect(|own| self.0.count(fact.at.process, || *own));
            }
            What::ProcessEnded(how) => {
                let first = self.0.take(fact.at.process).filter(|_| matches!(how, End::Exited | End::Exec));
                found.extend(first.map(|first| report(fact, first)));
            }
            _ => {}
        }
    }
}

fn own(fact: &Fact<'_>, export: Option<ExportId>, made: Result<u64, ResultCode>) -> Option<OwnOpen> {
    let export = fact.tracker.exports.get(export?).filter(|export| export.subject.kind == Kind::MemHandle)?;
    let got = export.latest_get;
    let size = export.subject.size;
    let fingerprint = export.fingerprint();
    let own = OwnOpen { opened: fact.at, made, got, size, fingerprint };
    (got.process == fact.at.process).then_some(own)
}

fn report(fact: &Fact<'_>, FirstOf { first, count }: FirstOf<OwnOpen>) -> Finding {
    let who = fact.actor();
    let size = of_size(first.size);
    let opened = call(first.opened);
    let (what, opens) = match first.made {
        Ok(pointer) => {
            let what = handle(Kind::Mapping, pointer);
            (what, format!("opened {what}{size} in {opened} from handle data that it got itself"))
        }
        Err(result) => {
            let what = handle(Kind::MemHandle, first.fingerprint);
            let which = which(first.opened, Outcome::Refused(result));
            (what, format!("opens {what}{size} in {opened}, {which}: it got the handle itself"))
        }
    };
    let all = if count == 1 { String::new() } else { format!("; it did this {} in total", times(count)) };
    let message = format!("{who} {opens} in {}{all}", call(first.got));
    let finding = Finding::new(&RULE, first.opened, what, message).other(Some(first.got));
    let finding = finding.values(first.size, Some(first.fingerprint));
    finding.advice("use the existing pointer: some backends refuse to open memory in the process that exported it")
}
