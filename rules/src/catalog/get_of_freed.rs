//! # What it does
//!
//! Finds a get on memory that this process has freed.
//!
//! # Why it is bad
//!
//! Freed memory cannot be shared. Where the free gave it back to the driver, the get is refused. What came from the adapter's
//! pool stays in the pool, and the get says success: the bytes are good, and show whoever opens them the next allocation of that
//! place. (A success is a note, because memory can also be made by functions that are not watched.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! producer: get p -> h fails
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Get before the free; where handle data is kept by address, forget it with the memory.

use urscope_schema::handle::Kind;

use super::{
    Check, Rule, When,
    wording::{call, of_size},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, FactKind, Outcome, What},
};

pub(super) static RULE: Rule = Rule {
    code: "get-of-freed",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is got of memory that is freed",
    facts: &[FactKind::Dangling],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Dangling(dangling, how) = fact.what else { return None };
    if dangling.was.kind != Kind::Usm {
        return None;
    }
    let (became, most) = match how {
        Outcome::Refused(result) => (format!("was answered {result}"), Severity::Error),
        Outcome::Done => ("was let, as if it still lived".into(), Severity::Note),
    };
    let (who, at, what, size) = (fact.actor(), call(fact.at), dangling.was, of_size(dangling.size));
    let inside = match dangling.pointer - what.value {
        0 => String::new(),
        inside => format!("{inside} bytes into "),
    };
    let message = format!(
        "{who} gets handle data in {at} for {inside}{what}{size} and {became}: it was freed in {}",
        call(dangling.died)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(dangling.died)).values(dangling.size, None);
    Some(finding.at_most(most).advice("get before the free, and forget what is kept by address with the memory"))
}
