//! What a regular list has recorded, and which of its commands can be changed.
//!
//! Must never hand out commands of a list that is not closed.

use std::{collections::BTreeMap, sync::Arc};

use crate::commands::stream::Command;
use crate::ffi::result::{Outcome, ZeResult};
use crate::kernels::kernel::Kernel;

#[derive(Default)]
pub(super) struct Recording {
    commands: Vec<Arc<Command>>,
    state: RecordingState,
    /// The changeable commands of a mutable list, by identifier.
    mutable: BTreeMap<u64, Mutable>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordingState {
    #[default]
    Open,
    Closed,
    /// A command was changed after the list was closed. It must be closed again.
    Changed,
}

/// A command that can be changed.
pub(super) struct Mutable {
    position: usize,
    /// The properties that can be changed (`ze_mutable_command_exp_flags_t`).
    pub flags: u32,
    /// The kernels that it may run, if it can run another one.
    pub kernels: Vec<Arc<Kernel>>,
    /// The number of events to wait for that it was appended with.
    pub waits: Option<usize>,
}

impl Recording {
    /// Adds commands: `INVALID_ARGUMENT` for a list that was closed.
    pub(super) fn append(&mut self, commands: &[Arc<Command>]) -> Outcome {
        if self.state != RecordingState::Open {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        self.commands.extend_from_slice(commands);
        Ok(())
    }

    /// Closes the list: `INVALID_ARGUMENT` if a launch was changed into one that cannot run.
    pub(super) fn close(&mut self) -> Outcome {
        if self.state == RecordingState::Changed && !self.commands.iter().all(|command| command.work.can_run()) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        self.state = RecordingState::Closed;
        Ok(())
    }

    /// The commands of a closed list: `INVALID_ARGUMENT` for any other one.
    pub(super) fn closed(&self) -> Outcome<Vec<Arc<Command>>> {
        if self.state == RecordingState::Closed { Ok(self.commands.clone()) } else { Err(ZeResult::INVALID_ARGUMENT) }
    }

    /// An identifier for the next command: `INVALID_ARGUMENT` for a list that was closed.
    pub(super) fn identify_next(&mut self, flags: u32, kernels: Vec<Arc<Kernel>>) -> Outcome<u64> {
        if self.state != RecordingState::Open {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        let position = self.commands.len();
        // The adapters use 0 for no identifier.
        let id = position as u64 + 1;
        self.mutable.insert(id, Mutable { position, flags, kernels, waits: None });
        Ok(id)
    }

    /// The command with an identifier: `INVALID_ARGUMENT` if there is none, or if it was not to be changed in this way.
    pub(super) fn changeable(&mut self, id: u64, flag: u32) -> Outcome<(Arc<Command>, &mut Mutable)> {
        let found = self.mutable.get_mut(&id).filter(|mutable| mutable.flags & flag != 0);
        let found = found.ok_or(ZeResult::INVALID_ARGUMENT)?;
        let command = self.commands.get(found.position).ok_or(ZeResult::INVALID_ARGUMENT)?;
        Ok((Arc::clone(command), found))
    }

    pub(super) fn replace(&mut self, id: u64, command: Command) {
        let position = self.mutable.get(&id).map(|mutable| mutable.position);
        if let Some(place) = position.and_then(|position| self.commands.get_mut(position)) {
            *place = Arc::new(command);
            if self.state == RecordingState::Closed {
                self.state = RecordingState::Changed;
            }
        }
    }
}
