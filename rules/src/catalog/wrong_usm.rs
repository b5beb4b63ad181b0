//! # What it does
//!
//! Reports a get of USM that is not device USM, and a get in another context than the one that the
//! memory was allocated in.
//!
//! Level Zero: nothing is reported. A driver exports memory of any of its contexts, and libraries get it in a context
//! of their own.
//!
//! CUDA: managed memory and memory of a pool cannot be got by `cuIpcGetMemHandle`.
//!
//! # Why it is bad
//!
//! `ur_api.h` takes "a pointer to device USM memory" and a context. Today's adapters look up the
//! pointer only, so they may succeed with host and shared USM and in any context; the consumer then
//! maps it as device memory. Another adapter refuses.
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! // Wrong: it is not memory of the device.
//! void *p = sycl::malloc_host(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
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
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096 as host
//! producer: get p -> h
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096 in c
//! producer: get p -> h in c
//! producer: put h in c
//! ```
//!
//! # What to do
//!
//! Share memory of `malloc_device` only, and get its handle data in the context that it was allocated in.

use urscope_schema::api::{Function, Promise};
use urscope_schema::handle::UsmType;
use urscope_schema::handle::{Handle, Kind};

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Exporting, Fact, FactKind, Source, What};

pub(super) static RULE: Rule = Rule {
    code: "wrong-usm",
    severity: Severity::Warning,
    when: When::Enter,
    title: "handle data is exported for host or shared USM, or in another context",
    sentence: "got handle data for {what} that is not fit for it",
    facts: &[FactKind::Exporting],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Exporting(Exporting { export, source: Source::Allocation(base, memory) }) = fact.what else {
        return None;
    };
    let born = memory.born?;
    let shared = fact.at.function.and_then(Function::usm_type).unwrap_or(UsmType::Device);
    let usm = memory.requested.usm.filter(|usm| *usm != shared);
    let contexts = memory.requested.context.zip(export.context).filter(|(own, given)| own != given);
    let (why, advice) = match (usm, contexts) {
        (Some(usm), _) => (format!("it is {}", usm.noun()), format!("share {} only", fact.at.words().shareable_memory)),
        (None, Some((own, given))) => (
            format!("it belongs to context {own:#x}, and the get names context {given:#x}"),
            "get handle data in the context that the memory was allocated in".into(),
        ),
        (None, None) => return None,
    };
    let what = Handle { kind: Kind::Usm, value: base };
    let who = fact.actor();
    let size = of_size(memory.requested.size);
    let at = call(fact.at);
    let message = format!("{who} gets handle data for {what}{size} in {at}; {why}, as allocated in {}", call(born));
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(born));
    finding.values(memory.requested.size, None).advice(advice).unless(Promise::AnyMemoryIsShareable)
}
