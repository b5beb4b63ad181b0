//! # What it does
//!
//! Finds handle data that is opened when its memory was freed and other memory has been allocated at the same address since.
//!
//! # Why it is bad
//!
//! The address is the same, the memory is not. The open is refused, or shows the content of an allocation that nobody has shared:
//! it works, and the data are wrong. A cache that knows handle data or mappings by address alone does this.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! producer: alloc p 4096
//! consumer: open h -> m
//! consumer: close m
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! The new memory is exported anew. (That its bytes are those of the old is chance, and no harm.)
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: free p
//! producer: alloc p 4096
//! producer: get p -> h2
//! consumer: open h2 -> m
//! consumer: close m
//! producer: put h2
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Send new handle data for new memory, and tell the consumer when the old is freed: forget what is kept by address with the
//! memory.

use super::{
    Check, Rule, When,
    wording::{call, expired},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Expiry, Fact, FactKind, What},
};

pub(super) static RULE: Rule = Rule {
    code: "stale-handle",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is opened when other memory has its address",
    facts: &[FactKind::OpenedExpired],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::OpenedExpired(old, outcome) = fact.what else { return None };
    let Expiry::Replaced(freed, reborn) = old.reason else { return None };
    let now = old.value.map_or_else(String::new, |pointer| format!(" at {pointer:#x}"));
    let allocated = reborn.map_or_else(String::new, |reborn| format!(", allocated in {}", call(reborn)));
    let why = format!(
        "it is of memory that was exported in {} and freed in {}; other memory is{now} since{allocated}",
        call(old.got),
        fact.place(freed)
    );
    let finding = expired(&RULE, fact, old, outcome, &why).other(reborn.or(Some(freed)));
    Some(finding.advice("send new handle data for new memory, and forget what is kept by address when it is freed"))
}
