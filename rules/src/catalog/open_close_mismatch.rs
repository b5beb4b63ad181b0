//! # What it does
//!
//! Reports a mapping that is ended in another way than it was opened: closed by a pointer into its middle, or passed to
//! `urUSMFree`.
//!
//! # Why it is bad
//!
//! A mapping is identified by the pointer that the open returned. Today's adapters accept a pointer into the middle and
//! drop a reference that may not be the caller's. `urUSMFree` returns an error and leaves the mapping open.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! // Wrong: this process did not allocate it.
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! queue.memset(p, 0, size).wait();
//! ipc::memory::close(p, ctx);
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
//! // Wrong: this is no memory of this process.
//! cuMemFree(p);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m + 8
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! A pointer into the middle may be exported: the open returns the matching pointer, and that pointer is closed.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p + 1024 -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Keep the pointer that the open returned, and close it with the close function.

use urscope_schema::api::{ResultCode, interface::Words};
use urscope_schema::counted;
use urscope_schema::handle::Kind;

use super::wording::{call, handle, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::fact::{Ending, Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "open-close-mismatch",
    severity: Severity::Error,
    when: When::Enter,
    title: "a mapping is closed by another pointer, or by urUSMFree",
    sentence: "closed {what} by another pointer or function than it was opened with",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    let (base, mapped) = match ending.target {
        Target::Mapping(mapped) if mapped.state == State::Alive => (ending.object.value, mapped),
        Target::Inside(base, mapped) => (base, mapped),
        _ => return None,
    };
    let opened = mapped.first_open()?;
    let what = handle(Kind::Mapping, base);
    let (how, advice) = mismatch(fact.at.words(), &ending, base)?;
    let who = fact.actor();
    let size = of_size(mapped.size);
    let message = format!("{who} {how} in {}; {what}{size} was opened in {}", call(fact.at), call(opened));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(opened));
    let answer =
        if ending.object.kind == Kind::Usm { ResultCode::INVALID_MEM_OBJECT } else { ResultCode::INVALID_ARGUMENT };
    Some(finding.values(mapped.size, mapped.fingerprint).advice(advice).answer(answer))
}

fn mismatch(words: Words, ending: &Ending<'_>, base: u64) -> Option<(String, String)> {
    let value = ending.object.value;
    if ending.object.kind == Kind::Usm {
        return Some((
            format!("passes the opened pointer {value:#x} to {}", words.free),
            format!(
                "close it with {}: opened memory belongs to the other process and cannot be freed here",
                words.close
            ),
        ));
    }
    if let Target::Mapping(mapped) = ending.target
        && mapped.imported
        && value == base
    {
        return Some((
            format!("closes {value:#x}, which an allocation has imported,"),
            "free what an allocation has imported with zeMemFree".into(),
        ));
    }
    (value != base).then(|| {
        (
            format!("closes {value:#x}, {} into a mapping,", counted(value - base, "byte")),
            "close the pointer that the open returned, not one computed from it".into(),
        )
    })
}
