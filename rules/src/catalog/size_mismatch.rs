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

use super::{Rule, When, wording::call};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "size-mismatch",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened with another size than its get gave",
    source: include_str!("size_mismatch.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Missized(missized) = fact.what else { return None };
    let (who, noun, at) = (fact.actor(), missized.handle.kind.noun(), call(fact.at));
    let message = format!(
        "{who} opens {} bytes as a {noun} in {at} and was refused: a get gives {} bytes, as in {}",
        missized.size,
        missized.given,
        fact.place(missized.got)
    );
    let finding = Finding::new(&RULE, fact.at, missized.handle, message).other(Some(missized.got));
    Some(
        finding
            .values(Some(missized.size), None)
            .advice("send the size that the get returned along with the data, and open with just that"),
    )
}
