//! # What it does
//!
//! Finds an open that is handed data of another size than any get of that kind has given on this host, and is therefore
//! refused.
//!
//! # Why it is bad
//!
//! Handle data is opened as a whole or not at all: `UR_RESULT_ERROR_INVALID_VALUE` says that its size is not that of its kind.
//! The size differs between kinds, adapters and backends, so a fixed array or a size of one's own goes wrong some day.
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
//! Send the size that the get returned along with the data, and open with just that.

use urscope_schema::{api::UrResult, handle::Handle};

use super::{Check, Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::{
        fact::{Fact, FactKind, What},
        pending::Operation,
    },
};

pub(super) static RULE: Rule = Rule {
    code: "size-mismatch",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened with another size than its get gave",
    facts: &[FactKind::Refused],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Refused(refused) = fact.what else { return None };
    let Operation::Open(open) = &refused.call.operation else { return None };
    if refused.result != UrResult::INVALID_VALUE {
        return None;
    }
    let (size, kind) = (open.size?, refused.opens?);
    let given = fact.tracker.other_size(fact.at.process, kind, size)?;
    let what = Handle { kind, value: open.data.unwrap_or_default() };
    let (who, noun, at) = (fact.actor(), kind.noun(), call(fact.at));
    let message = format!(
        "{who} opens {size} bytes as a {noun} in {at} and was refused: a get gives {} bytes, as in {}",
        given.size,
        fact.place(given.got)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(given.got)).values(Some(size), None);
    Some(finding.advice("send the size that the get returned along with the data, and open with just that"))
}
