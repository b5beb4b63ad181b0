//! # What it does
//!
//! Reports handle data that exposes more than its memory: other memory of the process, which is in use, lies in the
//! same allocation of the driver. It is reported once per process.
//!
//! # Why it is bad
//!
//! The adapters serve small memory from pools, and a driver exports whole allocations. A process that opens the handle
//! data can also read and write the neighbouring memory, which stays allocated as long as the handle data is open. The
//! specification allows it, so this is a note; but a program that shares memory with a process it does not trust shares
//! more than it intends. (The handle data states what the driver exports.)
//!
//! # Example
//!
//! The exporter:
//!
//! ```cpp
//! // Noted: 4 KiB lie in a pool with others.
//! void *p = sycl::malloc_device(4096, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! // More than the adapter takes from a pool.
//! void *p = sycl::malloc_device(8 << 20, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! ```
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
//! Give memory that is shared with untrusted processes an allocation of its own: larger than what the adapter pools (4
//! MiB of device memory by default).

use urscope_schema::counted;
use urscope_schema::handle::Kind;

use super::memory::{FirstOf, PerProcess};
use super::wording::{call, handle, of_size, times};
use super::{Check, Rule, RuleState, When};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Exported, Fact, FactKind, What};
use crate::tracker::{End, records::Allocation};

pub(super) static RULE: Rule = Rule {
    code: "slab-exposed",
    severity: Severity::Note,
    when: When::End,
    title: "handle data also exposes other memory of its process",
    sentence: "exposed other memory together with {what}",
    facts: &[FactKind::Exported, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(ExposingGets::default())),
};

/// The gets of each process of memory that lies in one allocation of the driver with other memory that is in use.
#[derive(Clone, Debug, Default)]
struct ExposingGets(PerProcess<FirstOf<Exposed>>);

/// A get that exposes other memory.
#[derive(Clone, Copy, Debug)]
struct Exposed {
    got: Place,
    /// The memory, and its size.
    memory: u64,
    size: Option<u64>,
    fingerprint: Option<u64>,
    /// How many bytes the driver exports.
    exported: u64,
    /// Other memory in these bytes, and the call that made it.
    neighbour: u64,
    made: Place,
}

impl RuleState for ExposingGets {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Exported(exported) => {
                if let Some(exposed) = exposed(fact, &exported) {
                    self.0.count(fact.at.process, || exposed);
                }
            }
            What::ProcessEnded(how) => {
                let first = self.0.take(fact.at.process).filter(|_| matches!(how, End::Exited | End::Exec));
                found.extend(first.map(|first| report(fact, first)));
            }
            _ => {}
        }
    }
}

/// The neighbour that a get exposes, if its handle data states what the driver exports.
fn exposed(fact: &Fact<'_>, exported: &Exported<'_>) -> Option<Exposed> {
    let base = exported.answer.base?;
    let bytes = exported.answer.extent?;
    let state = fact.tracker.state(fact.at.process)?;
    let of = exported.data.exported;
    let is_all_its_own = |memory: &Allocation| memory.requested.size.is_some_and(|size| size >= bytes);
    if state.allocations.get(base).is_some_and(is_all_its_own) {
        return None;
    }
    let within = || state.allocations.range(base..base.saturating_add(bytes));
    let in_use = within().filter(|(_, memory)| memory.freed.is_none() && !memory.dying);
    let mut others = in_use.filter(|(_, memory)| Some(memory.serial) != of);
    let (neighbour, made) = others.find_map(|(at, memory)| Some((at, memory.born?)))?;
    let (memory, own) = within().find(|(_, memory)| Some(memory.serial) == of)?;
    let size = own.requested.size;
    let fingerprint = exported.answer.fingerprint;
    Some(Exposed { got: fact.at, memory, size, fingerprint, exported: bytes, neighbour, made })
}

fn report(fact: &Fact<'_>, FirstOf { first, count }: FirstOf<Exposed>) -> Finding {
    let who = fact.actor();
    let what = handle(Kind::Usm, first.memory);
    let size = of_size(first.size);
    let all = if count == 1 { String::new() } else { format!("; it did this {} in total", times(count)) };
    let message = format!(
        "{who} got handle data for {what}{size} in {}, which exposes {}, including {}, in use since {}{all}",
        call(first.got),
        counted(first.exported, "byte"),
        handle(Kind::Usm, first.neighbour),
        call(first.made)
    );
    let finding = Finding::new(&RULE, first.got, what, message).other(Some(first.made));
    let finding = finding.values(first.size, first.fingerprint);
    finding.advice(
        "give memory that is shared with untrusted processes an allocation that is too large for the adapter's pool",
    )
}
