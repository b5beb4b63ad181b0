//! # What it does
//!
//! Reports a mapping that is closed more often than it was opened.
//!
//! # Why it is bad
//!
//! The adapters count the opens of one block of memory. They return success for a close too many, which drops a
//! reference that belongs to another user of the block, or makes the counter wrap around. On a device that unmaps the
//! block, the program crashes.
//!
//! # Example
//!
//! Two parts of a program that close the same mapping, and one owner that does it:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! ipc::memory::close(p, ctx);
//! // Wrong: it is closed already.
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! auto close = [&](void *mapped) {
//!   ipc::memory::close(mapped, ctx);
//! };
//! std::unique_ptr<void, decltype(close)> p(
//!     ipc::memory::open(data, ctx, dev), close);
//! queue.memset(p.get(), 0, size).wait();
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! receive(handle);
//! cuIpcOpenMemHandle(&p, handle,
//!                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
//! cuIpcCloseMemHandle(p);
//! // Wrong: it was opened once.
//! cuIpcCloseMemHandle(p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A pointer that was opened twice is closed twice.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: open h -> m
//! consumer: close m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Let one owner close each open, once. Where several parts of a program share a mapping, let each part open it.

use urscope_schema::{api::ResultCode, handle::Kind};

use super::wording::{call, opens_and_closes};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::Violation;
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "double-close",
    severity: Severity::Error,
    when: When::Enter,
    title: "a mapping is closed more often than it was opened",
    sentence: "closed {what} more often than it had opened it",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    if ending.violation(Kind::Mapping) != Some(Violation::Again) {
        return None;
    }
    let (opened, closed, size, fingerprint) = match ending.target {
        Target::Ended(tombstone) if tombstone.excused => return None,
        Target::Ended(tombstone) => (Some(tombstone.born), Some(tombstone.died), tombstone.size, tombstone.fingerprint),
        // The close of its last open is still under way.
        Target::Mapping(mapped) => (mapped.source(), None, mapped.size, mapped.fingerprint),
        _ => return None,
    };
    let who = fact.actor();
    let what = ending.object;
    let before = match (opened, closed) {
        (Some(opened), Some(closed)) => {
            format!("it was opened in {} and closed for the last time in {}", fact.place(opened), fact.place(closed))
        }
        _ => "another call is still closing its last open".into(),
    };
    let all = opens_and_closes(fact, what).unwrap_or_default();
    let message = format!("{who} closes {what} again in {}: {before}{all}", call(fact.at));
    let finding = Finding::new(&RULE, fact.at, what, message).other(closed.or(opened)).values(size, fingerprint);
    Some(
        finding
            .advice("let one owner close each open, once; remove one of the two closes")
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}
