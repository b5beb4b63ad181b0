//! Commands on shared memory that their hosts do not know to have completed, and commands of other processes on the
//! same bytes that were enqueued meanwhile: no host can have ordered the two.
//!
//! Whatever orders two commands through hosts, a message, a barrier or a file, begins when some host knows that the
//! first one has completed, and ends before the second one is enqueued. So no message needs to be seen. What may order
//! them on the device ends the question: an event of another process, a kernel that may wait for a flag, a copy to
//! memory of the host that may be one.

use smallvec::SmallVec;
use urscope_schema::api::Promise;
use urscope_schema::call::{Nanos, Waited};
use urscope_schema::handle::{Handle, Kind, UsmType};
use urscope_schema::operation::Command;

use super::fact::{FactConsumer, What};
use super::in_flight::{Part, Since, Unknown, Unordered};
use super::records::{Mapping, Serial};
use super::{process_state::ProcessState, state::Tracker};
use crate::place::{Place, ProcessId};

/// How many commands of a process are kept, and of others that were enqueued since one of them.
const COMMANDS: usize = 1024;
const SINCE: usize = 64;

impl Tracker {
    /// A command is enqueued.
    pub(super) fn command_begins(&mut self, at: Place, command: &Command) {
        if !at.promises(Promise::OrderIsSeen) {
            return;
        }
        let Some(state) = self.state(at.process) else { return };
        let is_for_host = command.writes.is_none_or(|address| !is_device_memory(state, address));
        let behind_kernel = command.behind_kernel || state.contexts.len() > 1;
        let parts = self.parts(state, at, command);
        if !parts.is_empty() && !behind_kernel {
            self.add_to_unknown(at, &parts);
        }
        let Some(state) = self.state_mut(at.process) else { return };
        if is_for_host {
            state.host_written = at.time;
        }
        if !parts.is_empty() {
            if state.unknown.len() >= COMMANDS {
                state.unknown.pop_front();
            }
            state.unknown.push_back(Unknown { place: at, parts, behind_kernel, since: Vec::new() });
        }
    }

    /// A command was refused.
    pub(super) fn command_refused(&mut self, place: Place) {
        let is_it = |other: Place| other.process == place.process && other.call == place.call;
        for state in &mut self.states {
            state.unknown.retain(|unknown| !is_it(unknown.place));
            for unknown in &mut state.unknown {
                unknown.since.retain(|since| !is_it(since.second.place));
            }
        }
    }

    /// The host of a process knows that all commands have completed which the process has enqueued, or can know it.
    pub fn waited(&mut self, who: ProcessId, waited: &Waited, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state_mut(who) else { return };
        let is_seen = !waited.kernels && state.contexts.len() <= 1;
        let later = state.unknown.iter().position(|unknown| unknown.place.time > waited.time);
        let known: Vec<Unknown> = state.unknown.drain(..later.unwrap_or(state.unknown.len())).collect();
        for Since { first, second, bytes } in known.into_iter().flat_map(|known| known.since).filter(|_| is_seen) {
            let unordered = Unordered { first, second, bytes, known: waited.time };
            self.emit(facts, second.place, What::Unordered(&unordered));
        }
    }

    /// Adds a command to those of other processes that are not known to have completed, and access the same bytes.
    fn add_to_unknown(&mut self, at: Place, parts: &[Part]) {
        let Some(host) = self.process(at.process).map(|process| process.host) else { return };
        // The latest use of an event that processes share, and the latest by another process than that one's.
        let uses = |other: usize| {
            let others = self.states.iter().enumerate().filter(move |(place, _)| *place != other);
            others.map(|(_, state)| state.event_used).max().unwrap_or(Nanos(0))
        };
        let is_other = |place: usize, state: &ProcessState| {
            place != at.process.0 as usize && state.process.host == host && !state.unknown.is_empty()
        };
        let others: Vec<(usize, Nanos)> = self
            .states
            .iter()
            .enumerate()
            .filter(|(place, state)| is_other(*place, state))
            .map(|(place, state)| (place, uses(place).max(state.host_written)))
            .collect();
        for (place, maybe_ordered) in others {
            let Some(state) = self.states.get_mut(place) else { continue };
            for unknown in state.unknown.iter_mut().filter(|it| !it.behind_kernel && it.place.time > maybe_ordered) {
                let mut pairs = unknown.parts.iter().flat_map(|first| parts.iter().map(move |second| (first, second)));
                let conflict = pairs.find_map(|(first, second)| Some((first, second, first.conflict(second)?)));
                if let Some((first, second, bytes)) = conflict
                    && unknown.since.len() < SINCE
                {
                    let (first, second) = (first.of(unknown.place), second.of(at));
                    unknown.since.push(Since { first, second, bytes });
                }
            }
        }
    }

    /// What a command accesses of memory that processes share.
    fn parts(&self, state: &ProcessState, at: Place, command: &Command) -> SmallVec<[Part; 2]> {
        let Some(size) = command.size.filter(|size| *size > 0) else { return SmallVec::new() };
        let part = |(address, writes): (Option<u64>, bool)| {
            let (memory, offset, handle) = self.shared_at(state, at, address?)?;
            Some(Part { memory, bytes: [offset, offset.saturating_add(size)], writes, handle })
        };
        [(command.writes, true), (command.reads, false)].into_iter().filter_map(part).collect()
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
