//! Commands on shared memory that their hosts do not know to have completed, and commands of other processes on the
//! same bytes that were enqueued meanwhile: no host can have ordered the two.
//!
//! Whatever orders two commands through hosts, a message, a barrier or a file, begins when some host knows that the
//! first one has completed, and ends before the second one is enqueued. So no message needs to be seen. What may order
//! them on the device ends the question: an event of another process, a kernel that may wait for a flag, a copy to
//! memory of the host that may be one.

use smallvec::SmallVec;
use urscope_schema::api::Promise;
use urscope_schema::call::{Nanos, SyncKind, Synchronization};
use urscope_schema::handle::{Handle, Kind, UsmType};
use urscope_schema::operation::Command;

use super::fact::{FactConsumer, What};
use super::in_flight::{KernelPairs, NotJudged, Part, Since, Unknown, Unordered};
use super::lists::Added;
use super::records::{Mapping, Serial};
use super::{process::End, process_state::ProcessState, state::Tracker};
use crate::place::{Place, ProcessId};

/// How many commands of a process are kept, and of others that were enqueued since one of them.
const COMMANDS: usize = 1024;
const SINCE: usize = 64;

/// Of how many commands it is remembered when they were known to be over.
const OVER: usize = 4096;

/// How many bytes the host may take for a flag.
const FLAG: u64 = 64;

impl Tracker {
    /// A command is enqueued.
    pub(super) fn command_begins(&mut self, at: Place, command: &Command) {
        if self.process(at.process).is_some_and(|process| self.limited.contains(&process.host)) {
            return;
        }
        let Some(state) = self.state_mut(at.process) else { return };
        if state.lists.add(command.queue, Added::Command(at, *command)) {
            return;
        }
        let queue = command.queue.unwrap_or_default();
        let position = state.queues.enqueue_command(queue, command.is_non_blocking, at.tid);
        let is_for_host =
            !command.is_migration && command.writes.is_none_or(|address| !is_device_memory(state, address));
        // Which bytes it accesses is not known.
        let is_unknown = command.size.is_none() && !command.is_migration;
        let is_only_counted = is_unknown
            || state.queues.is_behind_not_followed(position)
            || at.promises(Promise::ContextsHaveQueues) && state.contexts.len() > 1;
        if command.is_kernel || is_unknown {
            state.queues.not_followed(command.queue, at.tid);
        }
        state.queues.note_call(position, at.tid);
        // The host may look at it. What is longer is no flag: the order of its bytes is not promised.
        let may_tell = at.promises(Promise::HostCopiesWait) || command.size.is_none_or(|size| size <= FLAG);
        if is_for_host && may_tell {
            state.told_to_host.join(&state.queues.front_of(position.queue));
        }
        let Some(state) = self.state(at.process) else { return };
        let parts = self.parts(state, at, command);
        if parts.is_empty() {
            return;
        }
        let is_kernel = command.is_kernel;
        let mut unknown = Unknown {
            place: at,
            position,
            parts,
            is_kernel,
            is_only_counted,
            read_by: SmallVec::new(),
            since: Vec::new(),
            is_second: false,
            may_be_over: false,
        };
        unknown.is_second = self.add_to_unknown(&unknown);
        let Some(state) = self.state_mut(at.process) else { return };
        // What is not ordered with a kernel is not ordered with the one behind it on the same memory.
        let is_same = |last: &&mut Unknown| {
            is_kernel && last.is_kernel && last.position.queue == position.queue && last.parts == unknown.parts
        };
        if let Some(last) = state.unknown.back_mut().filter(is_same) {
            (last.place, last.position) = (at, position);
            return;
        }
        if state.unknown.len() >= COMMANDS {
            state.unknown.pop_front();
        }
        state.unknown.push_back(unknown);
    }

    /// The last call of a thread has returned.
    pub(super) fn call_returned(&mut self, who: ProcessId, tid: u32) {
        if let Some(state) = self.state_mut(who) {
            state.queues.call_returned(tid);
        }
    }

    /// A command was refused.
    pub(super) fn command_refused(&mut self, place: Place) {
        let is_it = |other: Place| other.process == place.process && other.call == place.call;
        for state in &mut self.states {
            state.lists.refused(is_it);
            state.unknown.retain(|unknown| !is_it(unknown.place));
            for unknown in &mut state.unknown {
                unknown.since.retain(|since| !is_it(since.second.place));
            }
        }
    }

    /// A process orders commands, or knows that some have completed, or can know it.
    pub fn synchronization(&mut self, who: ProcessId, by: &Synchronization, facts: &mut (impl FactConsumer + ?Sized)) {
        if by.kind == SyncKind::Limit {
            return self.limit_reached(who);
        }
        let Some(state) = self.state_mut(who) else { return };
        match (by.kind, by.queue) {
            (SyncKind::List, Some(list)) => return state.lists.list(list),
            (SyncKind::Shares, _) => return state.lists.forget(),
            (SyncKind::Executes, _) => return self.execute(who, by, facts),
            (SyncKind::Resets, Some(list)) if by.event.is_none() => return state.lists.reset(list),
            (SyncKind::InOrder | SyncKind::OutOfOrder, Some(queue)) => state.lists.queue(queue),
            (
                SyncKind::Signals | SyncKind::Barrier | SyncKind::WaitsFor | SyncKind::NotFollowed | SyncKind::Resets,
                list,
            ) if state.lists.add(list, Added::Order(*by)) => {
                return;
            }
            _ => {}
        }
        // Another process may have signalled a shared event since this one did.
        let object = by.event.and_then(|value| state.objects.get(&Handle { kind: Kind::Event, value }));
        let is_known = object.is_some_and(|event| event.export.is_some() || event.fingerprint.is_some());
        let is_shared = is_known || by.event.is_some() && state.shares_event_pools;
        // A queue or a host may signal it later.
        if by.kind == SyncKind::WaitsFor && !is_known && by.event.is_none_or(|event| !state.queues.is_signalled(event))
        {
            state.queues.not_followed(by.queue, by.tid);
        }
        if is_shared {
            state.event_used = by.time;
        }
        let by = match by.kind {
            SyncKind::Completed if is_shared => &Synchronization { kind: SyncKind::MayBeCompleted, ..*by },
            _ => by,
        };
        // Somebody who is not traced may wait for it.
        if let (true, SyncKind::Signals, Some(queue)) = (is_shared, by.kind, by.queue) {
            state.told_to_host.join(&state.queues.front_of(queue));
        }
        let stands_for_more = is_shared || state.queues.may_stand_for_more(by);
        let Some(known) = state.queues.synchronize(by) else { return };
        state.queues.note_known(&known);
        state.waited = state.waited.max(by.time);
        if stands_for_more {
            state.waited_for_all = state.waited;
        }
        let mut since = Vec::new();
        let mut over = Vec::new();
        state.unknown.retain_mut(|unknown| {
            let is_known = known.covers(unknown.position);
            if is_known {
                over.extend((unknown.is_second || !unknown.since.is_empty()).then_some((unknown.place, by.time)));
                since.append(&mut unknown.since);
            }
            !is_known
        });
        let room = OVER.saturating_sub(self.over.len());
        self.over.extend(over.into_iter().take(room));
        for Since { first, second, bytes } in since {
            let unordered = Unordered { first, second, bytes, known: Some(by.time) };
            self.emit(facts, second.place, What::Unordered(&unordered));
        }
    }

    /// A queue executes a command list: all that was added to it is enqueued now.
    fn execute(&mut self, who: ProcessId, by: &Synchronization, facts: &mut (impl FactConsumer + ?Sized)) {
        let Synchronization { tid, time, queue, .. } = *by;
        let Some(state) = self.state_mut(who) else { return };
        let Some(contents) = by.event.and_then(|list| state.lists.contents(list)) else {
            return state.queues.not_followed(queue, tid);
        };
        for added in contents {
            match added {
                Added::Command(place, command) => {
                    self.command_begins(Place { time, ..place }, &Command { queue, ..command });
                    self.call_returned(who, place.tid);
                }
                Added::Order(order) => self.synchronization(who, &Synchronization { tid, time, queue, ..order }, facts),
            }
            // Which of these calls has signalled which event is not remembered.
            self.call_returned(who, tid);
        }
    }

    /// A context of a process ends. That may wait for its commands.
    pub(super) fn context_ends(&mut self, who: ProcessId) {
        if let Some(state) = self.state_mut(who) {
            state.unknown.iter_mut().for_each(|unknown| unknown.may_be_over = true);
        }
    }

    /// A process ends, without having waited for what is unknown. Nobody else is known to have waited for it.
    pub(super) fn unknown_ends(&mut self, who: ProcessId, how: End, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state_mut(who) else { return };
        let unknown = std::mem::take(&mut state.unknown);
        // When another one ended, or what it did last, is not known.
        if !matches!(how, End::Exited | End::Exec) {
            return;
        }
        for Since { first, second, bytes } in unknown.into_iter().flat_map(|unknown| unknown.since) {
            let unordered = Unordered { first, second, bytes, known: None };
            self.emit(facts, second.place, What::Unordered(&unordered));
        }
    }

    /// When the process of a command knew that it had completed. That is remembered of commands in pairs that no host
    /// has ordered.
    pub fn known_to_be_over(&self, command: Place) -> Option<Nanos> {
        self.over.get(&command).copied()
    }

    /// Records of a process are lost. It may have waited for all commands.
    pub fn records_lost(&mut self, who: ProcessId, time: Nanos) {
        if let Some(state) = self.state_mut(who) {
            (state.waited, state.waited_for_all) = (time, time);
            state.queues.forget();
            state.lists.forget();
            state.unknown.clear();
        }
    }

    /// Commands of a process are not all recorded any more. What it does may order those of others, too.
    fn limit_reached(&mut self, who: ProcessId) {
        let Some(host) = self.process(who).map(|process| process.host) else { return };
        self.records_lost(who, Nanos(u64::MAX));
        if !self.limited.contains(&host) {
            self.limited.push(host);
        }
    }

    /// Adds a command to those of other processes that are not known to have completed, and access the same bytes. What
    /// may have waited for a flag, or may be ordered by one, is only counted, as is a kernel. Returns whether it was
    /// added to one.
    fn add_to_unknown(&mut self, new: &Unknown) -> bool {
        let at = new.place;
        let Some(host) = self.process(at.process).map(|process| process.host) else { return false };
        let mut is_added = false;
        // The latest uses of events that processes share, by two processes.
        let mut uses = [(usize::MAX, Nanos(0)); 2];
        for (place, state) in self.states.iter().enumerate() {
            let [first, second] = &mut uses;
            if state.event_used > first.1 {
                (*second, *first) = (*first, (place, state.event_used));
            } else if state.event_used > second.1 {
                *second = (place, state.event_used);
            }
        }
        let is_other = |place: usize, state: &ProcessState| {
            place != at.process.0 as usize && state.process.host == host && !state.unknown.is_empty()
        };
        let mut not_judged = NotJudged::default();
        let others = self.states.iter_mut().enumerate().filter(|(place, state)| is_other(*place, state));
        for (place, ProcessState { unknown, told_to_host, queues, .. }) in others {
            let used = uses.iter().find(|(user, _)| *user != place).map_or(Nanos(0), |(_, time)| *time);
            // A command behind those in front of it that has been read may be a flag.
            let mut is_told = false;
            for unknown in unknown.iter_mut().rev() {
                let pairs =
                    || unknown.parts.iter().flat_map(|first| new.parts.iter().map(move |second| (first, second)));
                let conflict = pairs().find_map(|(first, second)| Some((first, second, first.conflict(second)?)));
                is_told |= unknown.read_by.contains(&at.process);
                let Some((first, second, bytes)) = conflict else { continue };
                if unknown.may_be_over || unknown.place.time <= used {
                    continue;
                }
                if first.writes && !unknown.read_by.contains(&at.process) {
                    unknown.read_by.push(at.process);
                }
                if new.is_kernel || unknown.is_kernel {
                    let is_at_pointer =
                        pairs().any(|(first, second)| first.conflict(second).is_some() && first.is_at_pointer(second));
                    let of = if is_at_pointer { &mut not_judged.at_pointers } else { &mut not_judged.behind_pointers };
                    of.add(KernelPairs { count: 1, first: Some([unknown.place, at]) });
                } else if new.is_only_counted
                    || is_told
                    || unknown.is_only_counted
                    || told_to_host.covers(unknown.position)
                    || queues.is_in_front_of_not_followed(unknown.position)
                {
                    not_judged.pairs += 1;
                } else if unknown.since.len() < SINCE {
                    let first = first.access_at(unknown.place);
                    let second = second.access_at(at);
                    unknown.since.push(Since { first, second, bytes });
                    is_added = true;
                }
            }
        }
        let NotJudged { pairs, at_pointers, behind_pointers } = &not_judged;
        if pairs + at_pointers.count + behind_pointers.count > 0 {
            self.not_judged.entry(host).or_default().add(&not_judged);
        }
        is_added
    }

    /// The pairs of commands of a host's processes that were not judged.
    pub fn not_judged(&self, host: u64) -> Option<&NotJudged> {
        self.not_judged.get(&host)
    }

    /// What a command accesses of memory that processes share.
    fn parts(&self, state: &ProcessState, at: Place, command: &Command) -> SmallVec<[Part; 2]> {
        let size = if command.is_kernel { u64::MAX } else { command.size.unwrap_or(u64::MAX) };
        if size == 0 || command.is_migration {
            return SmallVec::new();
        }
        let part = |(address, writes): (Option<u64>, bool)| {
            let (memory, offset, handle) = self.shared_at(state, at, address?)?;
            Some(Part { memory, bytes: [offset, offset.saturating_add(size)], writes, handle })
        };
        [(command.writes, true), (command.reads, command.is_kernel)].into_iter().filter_map(part).collect()
    }

    /// The shared memory at an address of a process: who made it, which life of its address, and the offset in it.
    fn shared_at(&self, state: &ProcessState, at: Place, address: u64) -> Option<((ProcessId, Serial), u64, Handle)> {
        if let Some((base, mapping)) = state.mapping_at(address) {
            let offset = self.offset_of(mapping, at)?.saturating_add(address - base);
            let export = self.exports.get(mapping.export?)?;
            let handle = Handle { kind: Kind::Mapping, value: base };
            return Some(((export.producer, export.subject.serial?), offset, handle));
        }
        let (base, memory) = state.allocation_at(address).filter(|(_, memory)| memory.is_exported())?;
        Some(((at.process, memory.serial), address - base, Handle { kind: Kind::Usm, value: base }))
    }

    /// Where a mapping begins in the memory that it was opened from.
    fn offset_of(&self, mapping: &Mapping, at: Place) -> Option<u64> {
        if at.promises(Promise::HandlesNameAllocations) {
            return Some(0);
        }
        let export = self.exports.get(mapping.export?)?;
        let address = export.subject.value?;
        let (base, _) = self.state(export.producer)?.allocation_at(address)?;
        Some(address - base)
    }
}

/// Whether an address is known to be one of memory that a host cannot read.
fn is_device_memory(state: &ProcessState, address: u64) -> bool {
    let of_host = |usm: Option<UsmType>| matches!(usm, Some(UsmType::Host | UsmType::Shared));
    let allocation = || state.allocation_at(address).is_some_and(|(_, memory)| !of_host(memory.requested.usm));
    state.mapping_at(address).is_some() || allocation() || state.mapped.at(address).is_some()
}
