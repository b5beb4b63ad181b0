//! # What it does
//!
//! Finds a call that is handed the pointer of a mapping that this process has closed, and that is refused: a get, or
//! `urUSMFree`. (A second close is a [`double-close`](#double-close).)
//!
//! # Why it is bad
//!
//! With the last close the pointer is worth nothing. That the call is refused is luck: the addresses may be those of somebody
//! else's memory by then, which would be exported or freed in its place.
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
//! The same address may be memory of one's own later.
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
//! Forget the pointer where it is closed; let whoever still needs it hold the close back, or open it once more.

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
    code: "use-after-close",
    severity: Severity::Error,
    when: When::Exit,
    title: "the pointer of a closed mapping is used",
    facts: &[FactKind::Dangling],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    // Where it is not refused, there is memory that was made where we do not see.
    let What::Dangling(dangling, Outcome::Refused(result)) = fact.what else { return None };
    if dangling.was.kind != Kind::Mapping {
        return None;
    }
    let (who, at, size, closed) = (fact.actor(), call(fact.at), of_size(dangling.size), call(dangling.died));
    let pointer = dangling.pointer;
    let message = format!(
        "{who} hands {pointer:#x} to {at}, which was answered {result}: it was a mapping{size}, closed in {closed}"
    );
    let finding = Finding::new(&RULE, fact.at, dangling.was, message).other(Some(dangling.died));
    let finding = finding.values(dangling.size, dangling.fingerprint);
    Some(finding.advice("forget the pointer where it is closed, or close it later"))
}
