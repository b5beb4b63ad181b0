//! # What it does
//!
//! Reports a refused call that received the pointer of a mapping that this process has closed: a get, or `urUSMFree`.
//! (A second close is a [`double-close`](#double-close).)
//!
//! # Why it is bad
//!
//! The last close makes the pointer invalid. The refusal is not guaranteed: other memory may have the address by then,
//! and the call would export or free that memory instead.
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
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! ```
//!
//! Mended:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! send(data);
//! barrier();
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! consumer: get m -> g fails
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
//! consumer: get m -> g fails
//! consumer: free m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Discard the pointer when it is closed. A part of the program that still needs it must delay the close, or open the
//! memory once more.

use urscope_schema::handle::Kind;

use super::wording::{call, of_size, result_text};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, Outcome, What};

pub(super) static RULE: Rule = Rule {
    code: "use-after-close",
    severity: Severity::Error,
    when: When::Exit,
    title: "the pointer of a closed mapping is used",
    sentence: "used {what} after it had closed it",
    facts: &[FactKind::Dangling],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    // If it succeeds, the memory was made by a function that is not intercepted.
    let What::Dangling(dangling, Outcome::Refused(result)) = fact.what else { return None };
    if dangling.was.kind != Kind::Mapping {
        return None;
    }
    let (who, at, size, closed) = (fact.actor(), call(fact.at), of_size(dangling.size), call(dangling.died));
    let pointer = dangling.pointer;
    let message = format!(
        "{who} passes {pointer:#x} to {at}, which returned {}: it was a mapping{size}, closed in {closed}",
        result_text(fact.at, result)
    );
    let finding = Finding::new(&RULE, fact.at, dangling.was, message).other(Some(dangling.died));
    let finding = finding.values(dangling.size, dangling.fingerprint);
    Some(finding.advice("discard the pointer when it is closed, or close it later"))
}
