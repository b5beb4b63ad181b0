//! # What it does
//!
//! Notes memory that other processes have open when its owner ends without having freed it.
//!
//! # Why it is bad
//!
//! The memory goes with its process. The driver keeps it for those who have it open, but nobody writes to it any more, a second
//! open is refused, and SYCL promises nothing of it. Nothing in the specification forbids the owner to end, so this is a note.
//! (When exactly a process was killed is not in its trace: then it is told what was open when the trace stopped.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! producer: put h
//! producer: exit
//! consumer: close m
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
//! producer: exit
//! ```
//!
//! # What to do
//!
//! Let the owner wait for the others before it ends: a message back, or a barrier.

use super::{
    Rule, When,
    wording::{call, name, number, of_size},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, Left, What},
};

pub(super) static RULE: Rule = Rule {
    code: "exporter-gone",
    severity: Severity::Note,
    when: When::End,
    title: "a process ends while others have its memory open",
    source: include_str!("exporter_gone.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Gone(held, left) = fact.what else { return None };
    let ended = match left {
        Left::Exited => "exits",
        Left::Killed => "was killed, and its trace stops",
        Left::Incomplete | Left::ContextReleased => return None,
    };
    let (who, what, size) = (fact.actor(), held.what, of_size(held.size));
    let others = match held.holders - 1 {
        0 => String::new(),
        others => format!(" ({} more open)", number(others, "mapping")),
    };
    let message = format!(
        "{who} {ended} while {} has its {what}{size} open as {:#x}, since {}{others}",
        name(fact.tracker, held.opened.process),
        held.pointer,
        call(held.opened)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(held.opened));
    let finding = finding.values(held.size, Some(held.fingerprint));
    Some(finding.advice("let the owner wait for the others before it ends: a message back, or a barrier"))
}
