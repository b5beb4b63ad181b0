//! # What it does
//!
//! Reports memory that other processes have open when its owner ends without freeing it.
//!
//! # Why it is bad
//!
//! The memory is lost with its process. The driver keeps it for the processes that have it open, but nobody writes to
//! it any more, a second open is refused, and SYCL guarantees nothing. The specification does not forbid the owner to
//! end, so this is a note.
//!
//! A trace does not show when its process was killed or became another program. What was closed before
//! it was observed to be gone is not reported. `urscope run` observes it; without it, what is closed
//! after the last call of the owner is reported as not proved.
//!
//! # Example
//!
//! The exporter, at its end:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! // Wrong: the other process still reads.
//! std::exit(0);
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! void *p = sycl::malloc_device(size, queue);
//! auto handle = ipc::memory::get(p, ctx);
//! send(handle.data());
//! barrier();
//! ipc::memory::put(handle, ctx);
//! sycl::free(p, ctx);
//! std::exit(0);
//! ```
//!
//! With the CUDA driver:
//!
//! ```cpp
//! CUdeviceptr p;
//! CUipcMemHandle handle;
//! receive(handle);
//! cuIpcOpenMemHandle(&p, handle,
//!                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
//! barrier();
//! // Wrong: the exporter ends behind the barrier.
//! cuMemsetD8(p, 0, size);
//! ```
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
//! victim: alloc v 4096
//! victim: get v -> w
//! consumer: open w -> n
//! victim: put w
//! victim: killed
//! consumer: close n
//! victim: gone
//! producer: exit
//! ```
//!
//! # What to do
//!
//! Let the owner wait for the other processes before it ends, with an acknowledgement or a barrier.

use smallvec::SmallVec;
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{call::Nanos, counted};

use super::wording::{call, handle, name, of_size};
use super::{Check, Rule, RuleState, When, memory::one_of};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, Leftover, Reason, What};
use crate::tracker::records::{Allocation, Mapping, Serial};
use crate::tracker::{End, ProcessId, Tracker};

pub(super) static RULE: Rule = Rule {
    code: "exporter-gone",
    severity: Severity::Note,
    when: When::End,
    title: "a process ends while others have its memory open",
    sentence: "ended while {other} had its memory open",
    facts: &[FactKind::ProcessEnded, FactKind::Closed, FactKind::Finished],
    check: Check::Stateful(|| Box::new(EndedOwners::default())),
};

/// Memory of processes that were killed or became another program, at an unknown moment after their last records.
#[derive(Clone, Debug, Default)]
struct EndedOwners(Vec<EndedOwner>);

/// A process that ended, with memory that others had open when its trace ended.
#[derive(Clone, Debug)]
struct EndedOwner {
    at: Place,
    how: End,
    held: HeldMemory,
    /// The memory may have been closed before.
    doubtful: bool,
}

/// Memory that others have open.
#[derive(Clone, Debug)]
struct HeldMemory {
    what: Handle,
    serial: Serial,
    size: Option<u64>,
    fingerprint: u64,
    holders: SmallVec<[Holder; 1]>,
}

/// A mapping of it in another process.
#[derive(Clone, Copy, Debug)]
struct Holder {
    opened: Place,
    pointer: u64,
    serial: Serial,
    /// The close that came after the last record of the owner.
    closed: Option<Nanos>,
}

impl RuleState for EndedOwners {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::ProcessEnded(how @ (End::Exited | End::Exec | End::Killed)) => {
                let ended = ended(fact, how);
                if how == End::Exited {
                    found.extend(reports(fact.tracker, &ended));
                } else {
                    self.0.extend(ended);
                }
            }
            What::Closed(closed) if !self.0.is_empty() => {
                let holders = self.0.iter_mut().flat_map(|ended| &mut ended.held.holders);
                let is_it = |holder: &&mut Holder| {
                    holder.opened.process == fact.at.process && holder.pointer == closed.handle.value
                };
                let still = mapping(fact.tracker, fact.at.process, closed.handle.value);
                for holder in holders.filter(is_it).filter(|holder| holder.closed.is_none()) {
                    if still.is_none_or(|mapping| mapping.serial != holder.serial) {
                        holder.closed = Some(fact.at.time);
                    }
                }
            }
            What::Finished => {
                let mut ended = std::mem::take(&mut self.0);
                ended.retain_mut(|ended| ended.outlived(fact.tracker));
                let of_one = ended.chunk_by(|one, next| one.at.process == next.at.process);
                found.extend(of_one.flat_map(|ended| reports(fact.tracker, ended)));
            }
            _ => {}
        }
    }
}

impl EndedOwner {
    /// Whether others had the memory open after the process had ended, as far as the end of the run shows it.
    fn outlived(&mut self, tracker: &Tracker) -> bool {
        let Some(owner) = tracker.state(self.at.process) else { return false };
        let gone = owner.observed.map(|(_, gone)| gone);
        let holders = &mut self.held.holders;
        holders.retain(|holder| holder.held_after(tracker, gone.unwrap_or(self.at.time)));
        holders.sort_by_key(|holder| holder.closed.is_some());
        self.doubtful = gone.is_none() && holders.iter().all(|holder| holder.closed.is_some());
        !holders.is_empty()
    }
}

impl Holder {
    /// Whether the mapping was certainly still open after that time.
    fn held_after(&self, tracker: &Tracker, time: Nanos) -> bool {
        let Some(state) = tracker.state(self.opened.process) else { return false };
        match (self.closed, state.ended, state.observed) {
            (Some(closed), ..) => closed > time,
            (None, None | Some((End::Running, _)), _) => true,
            (None, Some((End::Exited, ended)), _) | (None, Some((_, ended)), None) => ended > time,
            (None, Some((_, ended)), Some((alive, _))) => ended.max(alive) > time,
        }
    }
}

/// The memory of the ending process that others have open, in the order of allocation.
fn ended(fact: &Fact<'_>, how: End) -> Vec<EndedOwner> {
    let Some(state) = fact.tracker.state(fact.at.process) else { return Vec::new() };
    let mut held: Vec<HeldMemory> =
        state.allocations.iter().filter_map(|(base, memory)| held(fact, base, memory)).collect();
    held.sort_unstable_by_key(|held| held.serial);
    held.into_iter().map(|held| EndedOwner { at: fact.at, how, held, doubtful: false }).collect()
}

/// Which other processes have an allocation open.
fn held(fact: &Fact<'_>, base: u64, memory: &Allocation) -> Option<HeldMemory> {
    let mut held: Option<HeldMemory> = None;
    for export in memory.exports.iter().filter_map(|id| fact.tracker.exports.get(*id)) {
        for (process, pointer) in export.holders.iter().filter(|(process, _)| *process != fact.at.process) {
            let mapping = mapping(fact.tracker, *process, *pointer).filter(|mapping| !mapping.ended_wrongly);
            let Some((serial, opened)) = mapping.and_then(|mapping| Some((mapping.serial, mapping.last_open()?)))
            else {
                continue;
            };
            let (what, fingerprint) = (handle(Kind::Usm, base), export.fingerprint());
            let none = HeldMemory {
                what,
                serial: memory.serial,
                size: memory.requested.size,
                fingerprint,
                holders: SmallVec::new(),
            };
            let holder = Holder { opened, pointer: *pointer, serial, closed: None };
            held.get_or_insert(none).holders.push(holder);
        }
    }
    held
}

/// A mapping of a process that has not ended.
fn mapping(tracker: &Tracker, process: ProcessId, pointer: u64) -> Option<&Mapping> {
    tracker.state(process).filter(|state| state.ended.is_none())?.mappings.get(pointer)
}

/// The findings about one process.
fn reports(tracker: &Tracker, ended: &[EndedOwner]) -> impl Iterator<Item = Finding> {
    let count = ended.len();
    ended.iter().enumerate().filter_map(move |(index, ended)| {
        let left = Leftover { reason: Reason::Exited, excused: false, index, count, since: Nanos(0), released: None };
        let first = ended.held.holders.first()?;
        one_of(left, || report(tracker, ended, *first))
    })
}

fn report(tracker: &Tracker, ended: &EndedOwner, Holder { opened, pointer, .. }: Holder) -> Finding {
    let EndedOwner { at, how, held, doubtful } = ended;
    let end = match how {
        End::Killed => "was killed, and its trace stops",
        End::Exec => "becomes another program",
        _ => "exits",
    };
    let (who, what, size) = (name(tracker, at.process), held.what, of_size(held.size));
    let others = match held.holders.len() - 1 {
        0 => String::new(),
        others => format!(" ({} more open)", counted(others as u64, "mapping")),
    };
    let unless = if *doubtful { "; not proved, because it may have been closed by then" } else { "" };
    let message = format!(
        "{who} {end} while {} has its {what}{size} open as {pointer:#x}, since {}{others}{unless}",
        name(tracker, opened.process),
        call(opened)
    );
    let finding = Finding::new(&RULE, *at, what, message).other(Some(opened));
    let finding = finding.values(held.size, Some(held.fingerprint));
    finding.advice("let the owner wait for the other processes before it ends, with an acknowledgement or a barrier")
}
