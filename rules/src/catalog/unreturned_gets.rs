//! # What it does
//!
//! Reports hundreds of handles of one allocation or one event pool that are not put when their process ends.
//!
//! # Why it is bad
//!
//! The runtime allocates a new buffer for each get (about 120 bytes in release 2026.2) and frees it with its put only,
//! not with the memory. A program that gets for every message grows without a bound. One put that is forgotten before a
//! free is no more than [`freed-while-exported`](#freed-while-exported); hundreds of them, of many allocations, are
//! [`lost-handles`](#lost-handles).
//!
//! # Example
//!
//! The exporter, in the main loop of a program:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! for (int step = 0; step < 1000; step++) {
//!   // Wrong: each of them has to be put.
//!   auto handle = ipc::memory::get(p, ctx);
//!   send(handle.data());
//!   barrier();
//! }
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! for (int step = 0; step < 1000; step++) {
//!   send(handle.data());
//!   barrier();
//! }
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! 300 times
//! producer: get p -> h$
//! end
//! producer: free p
//! producer: exit
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! 300 times
//! producer: get p -> h$
//! end
//! 300 times
//! producer: put h$
//! end
//! producer: free p
//! producer: exit
//! ```
//!
//! # What to do
//!
//! Get once, keep the handle data while the memory lives, and send copies of its bytes; or put each
//! handle once its bytes are sent and opened.

use urscope_schema::handle::{Handle, Kind};

use super::memory::{MANY_HANDLES, not_put};
use super::wording::{call, of_size, rate};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::lifecycle::State;
use crate::tracker::Map;
use crate::tracker::fact::{Fact, FactKind, What};
use crate::tracker::records::HandleData;

pub(super) static RULE: Rule = Rule {
    code: "unreturned-gets",
    severity: Severity::Warning,
    when: When::End,
    title: "hundreds of handles of one allocation are exported and not put",
    sentence: "got hundreds of handles of one allocation and did not put them",
    facts: &[FactKind::ProcessEnded],
    check: Check::Each(check),
};

fn check(fact: &Fact<'_>, found: &mut Vec<Finding>) {
    let What::ProcessEnded(end) = fact.what else { return };
    let Some(most) = not_put(end) else { return };
    let Some(state) = fact.tracker.state(fact.at.process) else { return };
    let mut of_one: Map<_, Vec<(Handle, &HandleData)>> = Map::default();
    for (handle, data) in state.handles.iter() {
        // SYCL keeps the handle data of an event with the event, and calls its put optional.
        let is_optional = handle.kind == Kind::EventHandle || data.is_descriptor();
        if data.state == State::Alive && !data.ended_wrongly && !is_optional {
            of_one.entry((handle.kind, data.exported, data.pointer)).or_default().push((*handle, data));
        }
    }
    let mut many: Vec<_> = of_one.into_values().filter(|handles| handles.len() as u64 >= MANY_HANDLES).collect();
    for handles in &mut many {
        handles.sort_unstable_by_key(|(_, data)| data.serial);
    }
    many.sort_unstable_by_key(|handles| handles.first().map(|(_, data)| data.serial));
    found.extend(many.iter().filter_map(|handles| report(fact, handles)).map(|finding| finding.at_most(most)));
}

fn report(fact: &Fact<'_>, handles: &[(Handle, &HandleData)]) -> Option<Finding> {
    let ((_, first), (handle, last)) = handles.first().zip(handles.last())?;
    let count = handles.len();
    let rate = rate(count as u64 - 1, first.born.time, last.born.time);
    let who = fact.actor();
    let size = of_size(last.size);
    let of = handle.kind.shares().map_or("object", Kind::noun);
    let value = last.pointer.map_or_else(String::new, |value| format!(" {value:#x}"));
    let message = format!(
        "{who} got {count} handles of the {of}{value}{size} from {} to {}{rate}, and did not put them; each keeps a buffer until its put",
        call(first.born),
        call(last.born)
    );
    let finding = Finding::of_call(&RULE, last.born, message).other(Some(first.born));
    Some(
        finding
            .values(last.size, last.fingerprint)
            .advice("get once and send copies of the bytes, or put each handle once its bytes have been opened"),
    )
}
