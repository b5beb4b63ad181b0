//! # What it does
//!
//! Notes handle data that shows more than its memory: other memory of the process, which is in use, lies in the same allocation of the
//! driver. It is told once for each process.
//!
//! # Why it is bad
//!
//! The adapters serve small memory from pools, and a driver exports whole allocations: who opens the handle data can read and write
//! the neighbours, too, and they stay pinned as long as it is open. Nothing forbids that, so this is a note; but who shares memory
//! with a process that it does not trust shares more than it knows. (What the driver exports is taken from the handle data.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: alloc p 4096 + 4096
//! producer: get p -> h exposes 65536
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: alloc p 4096 + 4096
//! producer: free p + 4096
//! producer: get p -> h exposes 65536
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! ```
//!
//! # What to do
//!
//! Give memory that is shared with strangers an allocation of its own: larger than what the adapter pools (4 MiB of device memory
//! by default).

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{call, handle, of_size, times},
};
use crate::{
    finding::{Finding, Severity},
    tracker::fact::{Fact, What},
};

pub(super) static RULE: Rule = Rule {
    code: "slab-exposed",
    severity: Severity::Note,
    when: When::End,
    title: "handle data shows other memory of its process, too",
    source: include_str!("slab_exposed.rs"),
    check,
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::Exposed(exposed) = fact.what else { return None };
    let (who, what, size) = (fact.actor(), handle(Kind::Usm, exposed.memory), of_size(exposed.size));
    let all = if exposed.count == 1 { String::new() } else { format!("; so it did {} in all", times(exposed.count)) };
    let message = format!(
        "{who} got handle data for {what}{size} in {}, which shows {} bytes: among them {}, in use since {}{all}",
        call(exposed.got),
        exposed.exported,
        handle(Kind::Usm, exposed.neighbour),
        call(exposed.made)
    );
    let finding = Finding::new(&RULE, exposed.got, what, message).other(Some(exposed.made));
    let finding = finding.values(exposed.size, exposed.fingerprint);
    Some(
        finding
            .advice("give memory that is shared with strangers an allocation that is too large for the adapter's pool"),
    )
}
