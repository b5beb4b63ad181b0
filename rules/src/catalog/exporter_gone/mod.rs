//! # What it does
//!
//! Reports memory that other processes have open when its owner ends without freeing it.
//!
//! # Why it is bad
//!
//! The memory is lost with its process. The driver keeps it for the processes that have it open, but nobody writes to
//! it any more, a second open is refused, and SYCL guarantees nothing. The specification does not forbid the owner to
//! end, so this is a note. It states how many bytes stay, of how many ended processes, and for how long.
//!
//! It is a warning where one process keeps such memory from one owner to the next: it has opened memory of three
//! processes or more, each after an earlier one had ended, and has kept 64 MiB or more of them, to its own end or for a
//! minute or longer. A server does so that does not notice the ends of its clients: the device is full one day. What
//! many processes open before the first of them ends is a note, however much it is: they end one after the other.
//!
//! A trace does not show when its process was killed or became another program. `urscope run` observes until when a
//! process is there, so that also what was opened after its last call is reported. What is closed within a second after
//! a kill was seen is not reported, and neither is what a process has open that is killed itself within this second.
//! Without `urscope run`, what is closed after the last call of the owner is reported as not proved.
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
//! first: alloc a 33554432
//! first: get a -> ha
//! server: open ha -> sa
//! first: put ha
//! first: exit
//! second: alloc b 33554432
//! second: get b -> hb
//! server: open hb -> sb
//! second: put hb
//! second: exit
//! third: alloc c 33554432
//! third: get c -> hc
//! server: open hc -> sc
//! third: put hc
//! third: exit
//! server: running
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
//! Let the owner wait for the other processes before it ends, with an acknowledgement or a barrier. An owner that may
//! be killed cannot wait: close what it has exported when it is gone. A closed connection, a missing heartbeat or a
//! pidfd shows that.

mod kept;

use smallvec::SmallVec;
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{call::Nanos, counted};

use self::kept::{Kept, of_several};
use super::wording::{call, handle, name, of_size};
use super::{Check, Rule, RuleState, When, memory::one_of};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Fact, FactKind, Leftover, Opened, Reason, What};
use crate::tracker::records::{Allocation, Mapping, Serial};
use crate::tracker::{End, ExportId, Map, ProcessId, Tracker, exports::Export};

pub(super) static RULE: Rule = Rule {
    code: "exporter-gone",
    severity: Severity::Warning,
    when: When::End,
    title: "a process ends while others have its memory open",
    sentence: "ended while {other} had its memory open",
    facts: &[FactKind::ProcessEnded, FactKind::Opened, FactKind::Closed, FactKind::Finished],
    check: Check::Stateful(|| Box::new(EndedOwners::default())),
};

/// The number of exports of killed processes that are remembered, because they may be opened after the last records of
/// these.
const MAX_EXPORTS: usize = 65_536;

/// The memory that was exported when its process ended.
#[derive(Clone, Debug, Default)]
struct EndedOwners {
    all: Vec<EndedMemory>,
    /// What may still be opened, because the end of its process is later than its last record: its index, by export.
    by_export: Map<ExportId, usize>,
    /// What is still open, by process and address.
    open: Map<(ProcessId, u64), SmallVec<[HolderIndex; 1]>>,
}

/// The indices of memory and of its holder.
#[derive(Clone, Copy, Debug)]
struct HolderIndex {
    memory: usize,
    holder: usize,
}

/// Memory of a process that has ended.
#[derive(Clone, Debug)]
struct EndedMemory {
    at: Place,
    how: End,
    what: Handle,
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
    /// It ended with its context, or in a wrong way, which was reported.
    is_excused: bool,
}

impl RuleState for EndedOwners {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::ProcessEnded(how) => {
                self.holder_ends(fact);
                if matches!(how, End::Exited | End::Exec | End::Killed) {
                    self.owner_ends(fact, how);
                }
            }
            What::Opened(opened) if !self.by_export.is_empty() => self.opened(fact, opened),
            What::Closed(closed) if !self.open.is_empty() => self.closed(fact, closed.handle.value),
            What::Finished => {
                let all = std::mem::take(self).all;
                let kept = Kept::of_all(fact.tracker, &all);
                let (several, kept) = of_several(fact.tracker, &all, kept);
                found.extend(several);
                let of_memory: Vec<_> = kept.chunk_by(|one, next| one.memory == next.memory).collect();
                for of_one in of_memory.chunk_by(|one, next| owner(&all, one) == owner(&all, next)) {
                    found.extend(reports(fact.tracker, &all, of_one));
                }
            }
            _ => {}
        }
    }
}

impl EndedOwners {
    /// A process ends that may have memory open whose owner has ended. What is not open in it any more ended with its
    /// context.
    fn holder_ends(&mut self, fact: &Fact<'_>) {
        if self.open.is_empty() {
            return;
        }
        let who = fact.at.process;
        let Self { all, open, .. } = self;
        open.retain(|(process, pointer), places| {
            for place in places.iter().filter(|_| *process == who) {
                let Some(holder) = holder(all, *place) else { continue };
                let still = mapping(fact.tracker, who, *pointer).filter(|mapping| mapping.serial == holder.serial);
                holder.is_excused = still.is_none_or(|mapping| mapping.ended_wrongly);
            }
            *process != who
        });
    }

    /// A process ends, with its exported memory. What nobody can have open then or later is left out.
    fn owner_ends(&mut self, fact: &Fact<'_>, how: End) {
        let Some(state) = fact.tracker.state(fact.at.process) else { return };
        let is_exported = |(_, memory): &(u64, &Allocation)| !memory.exports.is_empty();
        let mut exported: Vec<_> = state.allocations.iter().filter(is_exported).collect();
        exported.sort_unstable_by_key(|(_, memory)| memory.serial);
        let may_be_opened = how != End::Exited && state.observed.is_some();
        for (base, memory) in exported {
            let ended = ended(fact, how, base, memory);
            let index = self.all.len();
            if ended.holders.is_empty() && !(may_be_opened && self.by_export.len() < MAX_EXPORTS) {
                continue;
            }
            for (number, holder) in ended.holders.iter().enumerate() {
                let place = HolderIndex { memory: index, holder: number };
                self.open.entry((holder.opened.process, holder.pointer)).or_default().push(place);
            }
            if may_be_opened {
                self.by_export.extend(memory.exports.iter().map(|export| (*export, index)));
            }
            self.all.push(ended);
        }
    }

    /// Memory is opened whose owner has no more records, but is still there.
    fn opened(&mut self, fact: &Fact<'_>, opened: Opened) {
        let index = opened.export.and_then(|export| self.by_export.get(&export)).copied();
        let who = fact.at.process;
        let pointer = opened.handle.value;
        let Some((index, memory)) = index.and_then(|index| Some((index, self.all.get_mut(index)?))) else { return };
        let Some(mapping) = mapping(fact.tracker, who, pointer).filter(|_| opened.handle.kind == Kind::Mapping) else {
            return;
        };
        let serial = mapping.serial;
        let is_it = |holder: &Holder| holder.opened.process == who;
        if who == memory.at.process || memory.holders.iter().any(|it| is_it(it) && it.serial == serial) {
            return;
        }
        let place = HolderIndex { memory: index, holder: memory.holders.len() };
        self.open.entry((who, pointer)).or_default().push(place);
        memory.holders.push(Holder { opened: fact.at, pointer, serial, closed: None, is_excused: false });
    }

    /// An open is closed. It may not have been the only one of its mapping.
    fn closed(&mut self, fact: &Fact<'_>, pointer: u64) {
        let key = (fact.at.process, pointer);
        let Some(places) = self.open.get_mut(&key) else { return };
        let still = mapping(fact.tracker, fact.at.process, pointer).map(|mapping| mapping.serial);
        places.retain(|place| {
            let Some(holder) = holder(&mut self.all, *place) else { return false };
            let is_open = still == Some(holder.serial);
            holder.closed = Some(fact.at.time).filter(|_| !is_open);
            is_open
        });
        if places.is_empty() {
            self.open.remove(&key);
        }
    }
}

fn holder(all: &mut [EndedMemory], place: HolderIndex) -> Option<&mut Holder> {
    all.get_mut(place.memory)?.holders.get_mut(place.holder)
}

/// Memory of the ending process, with the mappings of it in other processes.
fn ended(fact: &Fact<'_>, how: End, base: u64, memory: &Allocation) -> EndedMemory {
    let at = fact.at;
    let tracker = fact.tracker;
    let exports = || memory.exports.iter().filter_map(|id| tracker.exports.get(*id));
    let mut fingerprint = None;
    let mut holders = SmallVec::new();
    for export in exports() {
        for (process, pointer) in export.holders.iter().filter(|(process, _)| *process != at.process) {
            let mapping = mapping(tracker, *process, *pointer).filter(|mapping| !mapping.ended_wrongly);
            if let Some((serial, opened)) = mapping.and_then(|mapping| Some((mapping.serial, mapping.first_open()?))) {
                fingerprint = fingerprint.or(Some(export.fingerprint()));
                holders.push(Holder { opened, pointer: *pointer, serial, closed: None, is_excused: false });
            }
        }
    }
    let fingerprint = fingerprint.or(exports().next().map(Export::fingerprint));
    let what = handle(Kind::Usm, base);
    let size = memory.requested.size;
    EndedMemory { at, how, what, size, fingerprint: fingerprint.unwrap_or_default(), holders }
}

/// A mapping of a process that has not ended.
fn mapping(tracker: &Tracker, process: ProcessId, pointer: u64) -> Option<&Mapping> {
    tracker.state(process).filter(|state| state.ended.is_none())?.mappings.get(pointer)
}

/// The process whose memory is kept.
fn owner(all: &[EndedMemory], kept: &[Kept]) -> Option<ProcessId> {
    Some(all.get(kept.first()?.memory)?.at.process)
}

/// The findings about one owner: what is kept of its memory, one by one.
fn reports(tracker: &Tracker, all: &[EndedMemory], of_owner: &[&[Kept]]) -> Vec<Finding> {
    let count = of_owner.len();
    let one = |(index, kept): (usize, &&[Kept])| {
        let reason = Reason::Exited;
        let since = Nanos(0);
        let until = Nanos(0);
        let left = Leftover { reason, excused: false, index, count, since, until, bytes: 0, released: None };
        let finding = report(tracker, all.get(kept.first()?.memory)?, kept)?;
        one_of(left, || finding)
    };
    of_owner.iter().enumerate().filter_map(one).collect()
}

/// The note about memory that is kept, with its first mapping; one that is proved, if there is one.
fn report(tracker: &Tracker, memory: &EndedMemory, kept: &[Kept]) -> Option<Finding> {
    let EndedMemory { at, how, what, size, .. } = *memory;
    let end = match how {
        End::Killed => "was killed, and its trace stops",
        End::Exec => "becomes another program",
        _ => "exits",
    };
    let first = kept.iter().min_by_key(|kept| kept.doubt.is_some())?;
    let others = match kept.len().saturating_sub(1) {
        0 => String::new(),
        others => format!(" ({} more open)", counted(others as u64, "mapping")),
    };
    let message = format!(
        "{} {end} while {} has its {what}{} open as {:#x}, since {}{others}{}",
        name(tracker, at.process),
        name(tracker, first.opened.process),
        of_size(size),
        first.pointer,
        call(first.opened),
        first.until()
    );
    let finding = Finding::new(&RULE, at, what, message).other(Some(first.opened));
    Some(finding.values(size, Some(memory.fingerprint)).at_most(Severity::Note).advice(advice(how)))
}

/// What to do about an end.
fn advice(how: End) -> &'static str {
    if how == End::Killed {
        "close the mapping when its owner is gone: a closed connection, a missing heartbeat or a pidfd shows that"
    } else {
        "let the owner wait for the other processes before it ends, with an acknowledgement or a barrier"
    }
}
