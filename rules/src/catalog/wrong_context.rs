//! # What it does
//!
//! Reports a mapping that is closed in another context than it was opened in.
//!
//! # Why it is bad
//!
//! A mapping belongs to the context in which it was opened. Today's adapters look only at the pointer and close the
//! mapping all the same. An adapter that also looks at the context refuses, and the mapping stays open until its own
//! context is released.
//!
//! # Example
//!
//! The process that opened the memory:
//!
//! ```cpp
//! sycl::context other(dev);
//! auto data = receive();
//! void *p = ipc::memory::open(data, other, dev);
//! // Wrong: p is of another context.
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Mended:
//!
//! ```cpp
//! sycl::context other(dev);
//! auto data = receive();
//! void *p = ipc::memory::open(data, other, dev);
//! ipc::memory::close(p, other);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m in c
//! consumer: close m in d
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! One pointer may be open in several contexts: each context has its own closes.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m in c
//! consumer: open h -> m in d
//! consumer: close m in c
//! consumer: close m in d
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Keep the context and the pointer of the open together, and close with exactly these two.

use urscope_schema::{api::UrResult, handle::Kind};

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::fact::{Fact, FactKind, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "wrong-context",
    severity: Severity::Error,
    when: When::Enter,
    title: "a mapping is closed in another context than it was opened in",
    sentence: "closed {what} in another context than it was opened in",
    facts: &[FactKind::InvalidEnding],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::InvalidEnding(ending) = fact.what else { return None };
    let Target::Mapping(mapped) = ending.target else { return None };
    if ending.object.kind != Kind::Mapping || mapped.state != State::Alive || mapped.is_open_in(ending.context) {
        return None;
    }
    let opened = mapped.last_open()?;
    let (closes, opens) = (ending.context?, mapped.opens.first()?.context?);
    let (who, what, size) = (fact.actor(), ending.object, of_size(mapped.size));
    let message = format!(
        "{who} closes {what}{size} in context {closes:#x} in {}; it was opened in context {opens:#x} in {}",
        call(fact.at),
        call(opened)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(opened));
    Some(
        finding
            .values(mapped.size, mapped.fingerprint)
            .advice("close it in the context it was opened in: keep the two together")
            .answer(UrResult::INVALID_ARGUMENT),
    )
}
