//! # What it does
//!
//! Reports a command (a copy, a fill, a prefetch or a kernel) that is enqueued for memory which this process has closed
//! or unmapped, before it is passed on, so also if the process dies in it. Reports also a command list that is executed
//! after the close or the unmap of memory which a command in it accesses, with the call that appended the command, and
//! a refused call that received the pointer of a closed mapping: a get, or `urUSMFree`. (A second close is a
//! [`double-close`](#double-close).)
//!
//! # Why it is bad
//!
//! The last close makes the pointer invalid. A command reads or overwrites what is there now, or ends the process. The
//! runtime may delay the unmapping, so that the command seems to work. The refusal of other calls is not guaranteed:
//! other memory may have the address by then, and the call would export or free that memory instead.
//!
//! A command is not reported if the address may be one of memory that the program has made by other means, such as
//! `malloc`: urscope asks the kernel what is there. Before Linux 6.11, it is only reported if nothing is there.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! // Wrong: p is closed.
//! queue.memset(p, 0, size).wait();
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
//! cuIpcCloseMemHandle(p);
//! // Wrong: the mapping has ended.
//! cuMemsetD8(p, 0, size);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! consumer: copy m sized 64
//! consumer: host-waits
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! The process may later allocate memory of its own at the same address.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! consumer: alloc m 4096
//! consumer: copy m sized 64
//! consumer: host-waits
//! consumer: get m -> g fails
//! consumer: free m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Discard the pointer when it is closed. A part of the program that still needs it must delay the close, or open the
//! memory once more. Reset or destroy a command list that has commands on the memory, also if the memory is opened once
//! more: the address may be another one.

use urscope_schema::handle::Kind;

use super::wording::{call, dead_access, of_size, opens_and_closes, result_text};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, What};

pub(super) static RULE: Rule = Rule {
    code: "use-after-close",
    severity: Severity::Error,
    when: When::Exit,
    title: "the pointer of a closed mapping is used",
    sentence: "used {what} after it had closed it",
    facts: &[FactKind::Dangling, FactKind::DeadAccess],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if let What::DeadAccess(access) = fact.what {
        let how = match access.used.was.kind {
            Kind::Mapping if access.used.died.ends_context() => "ended with its context",
            Kind::Mapping => "closed",
            Kind::PhysicalMem => "unmapped",
            _ => return None,
        };
        let finding = dead_access(&RULE, fact, access, how);
        return Some(finding.advice(if access.is_executed {
            format!("execute no list with a command that uses the memory after it is {how}: reset it")
        } else if access.used.died.ends_context() {
            "open the memory again in a context that is there".into()
        } else if opens_and_closes(fact, access.used.was).is_some() {
            "close each open once: one of those that share the mapping has closed for another".into()
        } else {
            format!("wait for the commands that use the memory before it is {how}")
        }));
    }
    // If it succeeds, the memory was made by a function that is not intercepted.
    let What::Dangling(dangling, Outcome::Refused(result)) = fact.what else { return None };
    if dangling.was.kind != Kind::Mapping {
        return None;
    }
    let who = fact.actor();
    let at = call(fact.at);
    let size = of_size(dangling.size);
    let closed = call(dangling.died);
    let pointer = dangling.pointer;
    let message = format!(
        "{who} passes {pointer:#x} to {at}, which returned {}: it was a mapping{size}, closed in {closed}",
        result_text(fact.at, result)
    );
    let finding = Finding::new(&RULE, fact.at, dangling.was, message).other(Some(dangling.died));
    let finding = finding.values(dangling.size, dangling.fingerprint);
    Some(finding.advice("discard the pointer when it is closed, or close it later"))
}
