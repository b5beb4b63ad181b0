//! # What it does
//!
//! Reports the last close of a mapping, or the unmap of physical memory that is shared, while a copy, fill or prefetch
//! that accesses it has not completed, or a kernel that has a pointer to it among its arguments. The software device
//! says which commands have not. Other devices cannot be asked: there it is a note if the host has not waited for
//! the command: for its queue, or for an event behind it. Where a kernel, or something else that is not followed, may
//! depend on the command, any wait counts.
//!
//! # Why it is bad
//!
//! The close unmaps the memory. What the command reads or writes then is undefined: the memory as it
//! should be, what the producer has put there meanwhile, or a device fault. A producer that is told of
//! the close may free the memory, or use it for something else, while the command still reads it.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! std::vector<std::byte> copy(size);
//! queue.memcpy(copy.data(), p, size);
//! // Wrong: the copy may still run.
//! ipc::memory::close(p, ctx);
//! queue.wait();
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! std::vector<std::byte> copy(size);
//! queue.memcpy(copy.data(), p, size).wait();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! cuMemcpyDtoDAsync(buffer, mapped, size, stream);
//! // Wrong: an unmap does not wait for the copy.
//! cuMemUnmap(mapped, size);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 4096
//! consumer: close m unfinished
//! producer: put h
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: copy m sized 4096
//! consumer: host-waits
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Wait for the command, its event or its queue before the close or the unmap.

use urscope_schema::handle::Kind;

use super::{Check, Rule, When, wording::in_use};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "closed-while-in-use",
    severity: Severity::Error,
    when: When::Enter,
    title: "a mapping is closed, or physical memory unmapped, while a command uses it",
    sentence: "closed {what} while a command used it",
    facts: &[FactKind::InUse],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InUse(memory) = fact.what else { return None };
    let (ends, advice) = match memory.memory.kind {
        Kind::Mapping => ("closes", "wait for the command, its event or its queue before the close"),
        Kind::PhysicalMem => ("unmaps", "wait for the command, its event or its queue before the unmap"),
        _ => return None,
    };
    Some(in_use(&RULE, fact, memory, ends).advice(advice))
}
