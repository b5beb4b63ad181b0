//! # What it does
//!
//! Reports the free of memory that was exported while a copy, fill or prefetch of its owner that accesses it has not
//! completed, or a kernel that has a pointer to it among its arguments. The software device says which commands have
//! not. Other devices cannot be asked: there it is a note if the host has not waited for the command, as
//! [closed-while-in-use](#closed-while-in-use) says. A free by a command of a queue waits for its turn and is not
//! reported.
//!
//! # Why it is bad
//!
//! The specification of Level Zero demands of `zeMemFree` that the device does not reference the memory
//! any more. The next allocation may have the address, and the command then reads or overwrites that. A
//! consumer that has the memory open sees what the command still writes.
//!
//! # Example
//!
//! The exporter, when the other process is done:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! queue.memset(p, 0, size);
//! // Wrong: the memset may still run.
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
//! queue.memset(p, 0, size).wait();
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: copy p sized 4096
//! producer: free p unfinished
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
//! producer: copy p sized 4096
//! producer: host-waits
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Wait for the command, its event or its queue before the free, or free by a command of the same queue.

use urscope_schema::handle::Kind;

use super::{Check, Rule, When, wording::in_use};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-in-use",
    severity: Severity::Error,
    when: When::Enter,
    title: "exported memory is freed while a command uses it",
    sentence: "freed {what} while a command used it",
    facts: &[FactKind::InUse],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InUse(memory) = fact.what else { return None };
    let finding = (memory.memory.kind == Kind::Usm).then(|| in_use(&RULE, fact, memory, "frees"))?;
    Some(finding.advice("wait for the command, its event or its queue before the free"))
}
