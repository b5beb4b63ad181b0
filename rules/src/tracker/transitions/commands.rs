//! Commands that access shared memory, from their enter on. Whether they have completed is determined
//! when the memory ends.

use std::num::NonZeroU64;

use urscope_schema::{api::ResultCode, operation};

use crate::place::{Place, ProcessId};
use crate::tracker::records::{Command, DeviceError, MAX_COMMANDS};
use crate::tracker::{pending::PendingChange, process_state::ProcessState, state::Tracker};

/// A command is enqueued. If its size is not known, as for a kernel, the byte at its address counts. A command that
/// accesses no shared memory is remembered, too: a list that has it may be executed when its memory has ended.
pub(super) fn enqueue(tracker: &mut Tracker, at: Place, command: &operation::Command) -> PendingChange {
    let Some(state) = tracker.state_mut(at.process) else { return PendingChange::Nothing };
    let shared = |address: Option<u64>| address.filter(|address| is_shared(state, *address));
    let to = shared(command.writes);
    let from = shared(command.reads);
    for address in [command.writes, command.reads].into_iter().flatten() {
        state.mapped.note_access(address, at.time);
    }
    let queue = command.queue.unwrap_or_default();
    let position = if state.lists.has(queue) { None } else { state.queues.latest(queue) };
    let commands = &mut state.commands;
    if commands.len() >= MAX_COMMANDS {
        commands.pop_front();
    }
    commands.push_back(Command { place: at, addresses: [to, from], size: command.size.unwrap_or(1), position });
    PendingChange::Enqueue
}

/// Whether an address lies in memory that this process has opened, or of which it has got handle data.
fn is_shared(state: &ProcessState, address: u64) -> bool {
    let exported = state.allocation_at(address).is_some_and(|(_, memory)| memory.is_exported());
    exported || state.mapping_at(address).is_some() || state.shared_physical_at(address).is_some()
}

/// A call has reported the failure of a device.
#[cold]
pub(super) fn device_failed(tracker: &mut Tracker, at: Place, result: ResultCode) {
    let Some(state) = tracker.state_mut(at.process) else { return };
    if state.device_error.is_none() {
        let on_shared = |command: &&Command| command.addresses != [None; 2] && command.place != at;
        let mut commands: Vec<_> = state.commands.iter().rev().filter(on_shared).take(3).map(|it| it.place).collect();
        commands.reverse();
        state.device_error = Some(DeviceError { at, result, commands });
    }
}

/// A command was not enqueued.
pub(super) fn refused(tracker: &mut Tracker, who: ProcessId, call: Option<NonZeroU64>) {
    if let Some(state) = tracker.state_mut(who) {
        state.commands.retain(|command| command.place.call != call);
    }
}
