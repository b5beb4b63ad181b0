//! # What it does
//!
//! Reports an open that is refused because the size of its data differs from that of every get of this kind on the
//! host.
//!
//! # Why it is bad
//!
//! Handle data is opened as a whole or not at all: `UR_RESULT_ERROR_INVALID_VALUE` means that the size is not the size
//! of the kind. The size differs between kinds, adapters and backends, so an array or a size that the program fixes
//! will fail one day.
//!
//! # Example
//!
//! The process that opens, with a message of fixed length:
//!
//! ```cpp
//! auto data = receive();
//! // Wrong: handle data has a size of its own.
//! data.resize(256);
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! auto data = receive();
//! void *p = ipc::memory::open(data, ctx, dev);
//! ipc::memory::close(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m sized 64 fails 4
//! producer: put h
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
//! ```
//!
//! # What to do
//!
//! Send the size that the get returned together with the data, and open with exactly this size.

use urscope_schema::{api::ResultCode, handle::Handle};

use super::wording::{call, one};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "size-mismatch",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened with another size than its get returned",
    sentence: "opened handle data with another size than its get had returned",
    facts: &[FactKind::Refused],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Refused(refused) = fact.what else { return None };
    let (open, _) = refused.call.open()?;
    // Bytes that a get has returned have their size.
    let known = fact.tracker.export_of(fact.at.process, open.fingerprint).is_some();
    if refused.result != ResultCode::INVALID_VALUE || known {
        return None;
    }
    let size = open.size?;
    let kind = refused.opens?;
    let given = fact.tracker.other_size(fact.at.process, kind, size)?;
    let what = Handle { kind, value: open.data.unwrap_or_default() };
    let who = fact.actor();
    let kind = one(kind);
    let at = call(fact.at);
    let message = format!(
        "{who} opens {size} bytes as {kind} in {at}, which was refused: a get returns {} bytes, as in {}",
        given.size,
        fact.place(given.got)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(given.got)).values(Some(size), None);
    Some(finding.advice("send the size that the get returned together with the data, and open with exactly this size"))
}
