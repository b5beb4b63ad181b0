//! # What it does
//!
//! Reports a mapping that is closed in another context than it was opened in, or that a command accesses in a queue of
//! another context.
//!
//! # Why it is bad
//!
//! A mapping belongs to the context in which it was opened. Today's adapters look only at the pointer and close the
//! mapping all the same. An adapter that also looks at the context refuses, and the mapping stays open until its own
//! context is released.
//!
//! A queue must have the context of the memory that its commands access: in SYCL all else is undefined. It is a note if
//! no recorded call has made one of the contexts: two handles may then stand for one context of the driver. A call of
//! another interface than that of the open is not reported: its handle may stand for the context of the open.
//!
//! Level Zero: such a command is a note. The specification asks for one context, but drivers map memory for all of
//! them, and oneCCL opens in a context of its own.
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
//! Fixed:
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

use urscope_schema::api::{Promise, ResultCode};
use urscope_schema::handle::Kind;

use super::wording::{call, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::fact::{Fact, FactKind, ForeignUse, Target, What};

pub(super) static RULE: Rule = Rule {
    code: "wrong-context",
    severity: Severity::Error,
    when: When::Enter,
    title: "a mapping is closed or used in another context than it was opened in",
    sentence: "closed or used {what} in another context than it was opened in",
    facts: &[FactKind::InvalidEnding, FactKind::ForeignUse],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    if let What::ForeignUse(used) = fact.what {
        return Some(foreign(fact, used));
    }
    let What::InvalidEnding(ending) = fact.what else { return None };
    let Target::Mapping(mapped) = ending.target else { return None };
    if ending.object.kind != Kind::Mapping || mapped.state != State::Alive || mapped.is_open_in(ending.context, fact.at)
    {
        return None;
    }
    let opened = mapped.first_open()?;
    let closes = ending.context?;
    let opens = mapped.opens.first()?.context?;
    let who = fact.actor();
    let what = ending.object;
    let size = of_size(mapped.size);
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
            .answer(ResultCode::INVALID_ARGUMENT),
    )
}

fn foreign(fact: &Fact<'_>, used: &ForeignUse) -> Finding {
    let ForeignUse { mapping, size, fingerprint, opened, of, context, is_certain } = *used;
    let who = fact.actor();
    let at = call(fact.at);
    let known = of_size(size);
    let unless = if is_certain { "" } else { "; not proved, because both may stand for one context of the driver" };
    let message = format!(
        "{who} accesses {mapping}{known} in {at}, in a queue of context {context:#x}; it was opened in context {of:#x} \
         in {}{unless}",
        call(opened)
    );
    let finding = Finding::new(&RULE, fact.at, mapping, message).other(Some(opened)).values(size, fingerprint);
    let finding = finding.at_most(if is_certain { Severity::Error } else { Severity::Note });
    let finding = finding.note_where(Promise::AnyMemoryIsShareable);
    finding.advice("open it in the context of the queue, or use a queue of the context that it was opened in")
}
