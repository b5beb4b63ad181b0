//! # What it does
//!
//! Reports memory that other processes have open when its owner ends without freeing it.
//!
//! # Why it is bad
//!
//! The memory is lost with its process. The driver keeps it for the processes that have it open, but nobody writes to
//! it any more, a second open is refused, and SYCL guarantees nothing. The specification does not forbid the owner to
//! end, so this is a note. (A trace does not show exactly when its process was killed. The rule then reports what was
//! open when the trace stopped.)
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
//! Let the owner wait for the other processes before it ends, with a message back or a barrier.

use urscope_schema::{
    counted,
    handle::{Handle, Kind},
};

use super::{
    Check, Rule, When,
    memory::one_of,
    wording::{call, handle, name, of_size},
};
use crate::{
    finding::{Finding, Place, Severity},
    tracker::{
        End,
        fact::{Fact, FactKind, Left, Reason, What},
        records::{Allocation, Mapping, Serial},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "exporter-gone",
    severity: Severity::Note,
    when: When::End,
    title: "a process ends while others have its memory open",
    facts: &[FactKind::ProcessEnded],
    check: Check::Each(check),
};

fn check(fact: &Fact<'_>, found: &mut Vec<Finding>) {
    let What::ProcessEnded(how @ (End::Exited | End::Exec | End::Killed)) = fact.what else { return };
    let Some(state) = fact.tracker.state(fact.at.process) else { return };
    let held = state.allocations.iter().filter_map(|(base, memory)| held(fact, base, memory));
    let mut held: Vec<Held> = held.collect();
    held.sort_unstable_by_key(|held| held.serial);
    let count = held.len();
    for (index, held) in held.into_iter().enumerate() {
        let left = Left { reason: Reason::Exited, excused: false, index, count, released: None };
        found.extend(one_of(left, || report(fact, how, &held)));
    }
}

/// Memory that others have open when its process ends.
struct Held {
    what: Handle,
    serial: Serial,
    size: Option<u64>,
    fingerprint: u64,
    holders: u64,
    /// The open of one of them, with its address there.
    opened: Place,
    pointer: u64,
}

/// Which other processes have an allocation open.
fn held(fact: &Fact<'_>, base: u64, memory: &Allocation) -> Option<Held> {
    let mut held: Option<Held> = None;
    for export in memory.exports.iter().filter_map(|id| fact.tracker.exports().get(*id)) {
        for (process, pointer) in export.holders.iter().filter(|(process, _)| *process != fact.at.process) {
            let holder = fact.tracker.state(*process).filter(|state| state.ended.is_none());
            let mapping = holder.and_then(|state| state.mappings.get(*pointer));
            let open = mapping.filter(|mapping| !mapping.ended_wrongly).and_then(Mapping::last_open);
            let Some(opened) = open else { continue };
            let (what, fingerprint) = (handle(Kind::Usm, base), export.fingerprint());
            let (serial, size, pointer) = (memory.serial, memory.requested.size, *pointer);
            let first = Held { what, serial, size, fingerprint, holders: 0, opened, pointer };
            held.get_or_insert(first).holders += 1;
        }
    }
    held
}

fn report(fact: &Fact<'_>, how: End, held: &Held) -> Finding {
    let ended = match how {
        End::Killed => "was killed, and its trace stops",
        End::Exec => "becomes another program",
        _ => "exits",
    };
    let (who, what, size) = (fact.actor(), held.what, of_size(held.size));
    let others = match held.holders - 1 {
        0 => String::new(),
        others => format!(" ({} more open)", counted(others, "mapping")),
    };
    let message = format!(
        "{who} {ended} while {} has its {what}{size} open as {:#x}, since {}{others}",
        name(fact.tracker, held.opened.process),
        held.pointer,
        call(held.opened)
    );
    let finding = Finding::new(&RULE, fact.at, what, message).other(Some(held.opened));
    let finding = finding.values(held.size, Some(held.fingerprint));
    finding.advice("let the owner wait for the other processes before it ends, with a message back or a barrier")
}
