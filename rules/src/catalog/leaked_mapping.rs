//! # What it does
//!
//! Finds a mapping that is still open when its process exits or the last reference to its context is released.
//!
//! # Why it is bad
//!
//! An open mapping holds the memory of the producer, also when that has freed it or is gone: device memory is short,
//! and nobody can tell who holds it. Some drivers keep a file descriptor for each.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: exit
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! An open that failed gave nothing.
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: open h -> m fails
//! consumer: close m
//! consumer: exit
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Close each open once, before its context goes. Of a process that was killed, or whose trace is incomplete, this is
//! only a note.

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{call, handle, left, of_size, times},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Left, What},
};

pub(super) static RULE: Rule = Rule {
    code: "leaked-mapping",
    severity: Severity::Warning,
    when: When::End,
    title: "a mapping is opened and never closed",
    source: include_str!("leaked_mapping.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::LeftMapping { pointer, mapped, left: how } = fact.what else { return None };
    let opened = mapped.last_open()?;
    let what = handle(Kind::Mapping, pointer);
    let from =
        mapped.source.map_or_else(String::new, |source| format!("; its handle data came from {}", fact.place(source)));
    let closed = match (mapped.opened, mapped.closed) {
        (1, _) => "never closed it".into(),
        (all, closed) => format!("closed it {} for {} opens", times(closed), all),
    };
    let (who, size, (end, most)) = (fact.actor(), of_size(mapped.size), left(how));
    let released = if how == Left::ContextReleased { format!(" in {}", call(fact.at)) } else { String::new() };
    let message = format!("{who} opened {what}{size} in {} and {closed}; {end}{released}{from}", call(opened));
    let finding = Finding::new(&RULE, opened, what, message).other(mapped.source);
    Some(
        finding
            .values(mapped.size, mapped.fingerprint)
            .at_most(most)
            .advice("close each open once, before its context goes"),
    )
}
