//! Entry points that change commands of a mutable list after they were appended.
//!
//! A change replaces the command in the list: what was submitted before stays as it was. The list must be closed again
//! before it is executed. Errors change nothing. Must never change a command that was appended without an identifier.

use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Arc;

use crate::commands::stream::{Command, Wait};
use crate::commands::{list::CommandList, recording::Recording, work::Work};
use crate::discovery::properties::MUTABLE;
use crate::events::event::Event;
use crate::ffi::handles::Handle;
use crate::ffi::layout::{
    Extent, MutableCommandIdDesc, MutableCommandsDesc, MutableGlobalOffset, MutableGroupCount, MutableGroupSize,
    MutableKernelArgument,
};
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Argument, In, Out};
use crate::kernels::kernel::Kernel;
use crate::kernels::launch::{Launch, Settings};

/// `ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS`, and so on.
const KERNEL_ARGUMENTS: u32 = 1;
const GROUP_COUNT: u32 = 1 << 1;
const GROUP_SIZE: u32 = 1 << 2;
const GLOBAL_OFFSET: u32 = 1 << 3;
const SIGNAL_EVENT: u32 = 1 << 4;
const WAIT_EVENTS: u32 = 1 << 5;
const KERNEL: u32 = 1 << 6;
/// What can be changed in a command whose descriptor has no flags: all but the kernel.
const DEFAULT: u32 = MUTABLE & !KERNEL;
/// All flags of ze_api.h.
const FLAGS: u32 = 0xff;

/// A launch with its changes.
struct Change {
    command: Arc<Command>,
    flags: u32,
    kernel: Arc<Kernel>,
    settings: Settings,
    groups: Extent,
}

/// `zeCommandListGetNextCommandIdExp` (ze_api.h). `INVALID_ARGUMENT` for a list that is closed or not mutable.
pub extern "C" fn get_next_command_id(
    list: Handle<CommandList>,
    desc: In<MutableCommandIdDesc>,
    id: Out<u64>,
) -> ZeResult {
    call(|| next_id(&*list.get()?, desc, Vec::new(), id))
}

/// `zeCommandListGetNextCommandIdWithKernelsExp` (ze_api.h).
pub extern "C" fn get_next_command_id_with_kernels(
    list: Handle<CommandList>,
    desc: In<MutableCommandIdDesc>,
    count: Argument<u32>,
    kernels: In<Handle<Kernel>>,
    id: Out<u64>,
) -> ZeResult {
    call(|| {
        let kernels = if kernels.is_null() { Vec::new() } else { kernels.objects(count)? };
        next_id(&*list.get()?, desc, kernels, id)
    })
}

fn next_id(list: &CommandList, desc: In<MutableCommandIdDesc>, kernels: Vec<Arc<Kernel>>, id: Out<u64>) -> Outcome {
    let flags = match desc.read()?.flags {
        0 => DEFAULT,
        flags if flags & !FLAGS != 0 => return Err(ZeResult::INVALID_ENUMERATION),
        flags if flags & !MUTABLE != 0 => return Err(ZeResult::UNSUPPORTED_ENUMERATION),
        flags => flags,
    };
    id.check()?;
    id.write(list.mutable()?.lock().identify_next(flags, kernels)?)
}

/// `zeCommandListUpdateMutableCommandsExp` (ze_api.h). `INVALID_ARGUMENT` for anything that does not fit the command.
pub extern "C" fn update_commands(list: Handle<CommandList>, desc: In<MutableCommandsDesc>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        desc.check()?;
        let mut recording = list.mutable()?.lock();
        let mut changes = BTreeMap::new();
        for next in desc.all_next() {
            if let Some(argument) = next.as_a::<MutableKernelArgument>() {
                let MutableKernelArgument { command_id, arg_index, arg_size, .. } = argument.read()?;
                let change = change(&mut recording, &mut changes, command_id, KERNEL_ARGUMENTS)?;
                let value = argument.member(|argument| argument.value)?;
                let Change { kernel, settings, .. } = change;
                let set = kernel.set_argument(settings, arg_index as usize, arg_size, value);
                set.map_err(|_| ZeResult::INVALID_ARGUMENT)?;
            } else if let Some(count) = next.as_a::<MutableGroupCount>() {
                let change = change(&mut recording, &mut changes, count.read()?.command_id, GROUP_COUNT)?;
                change.groups = count.member(|count| count.group_count)?.read()?;
            } else if let Some(size) = next.as_a::<MutableGroupSize>() {
                let MutableGroupSize { command_id, size, .. } = size.read()?;
                change(&mut recording, &mut changes, command_id, GROUP_SIZE)?.settings.group = size;
            } else if let Some(offset) = next.as_a::<MutableGlobalOffset>() {
                let MutableGlobalOffset { command_id, offset, .. } = offset.read()?;
                change(&mut recording, &mut changes, command_id, GLOBAL_OFFSET)?.settings.offset = offset;
            }
        }
        for (id, Change { command, kernel, settings, groups, .. }) in changes {
            recording.replace(id, command.with_launch(Launch::with(&kernel, settings), groups));
        }
        Ok(())
    })
}

/// The launch with this identifier and what was changed in it so far: `INVALID_ARGUMENT` if there is
/// none, or if it was not to be changed in this way.
fn change<'a>(
    recording: &mut Recording,
    changes: &'a mut BTreeMap<u64, Change>,
    id: u64,
    flag: u32,
) -> Outcome<&'a mut Change> {
    let found = match changes.entry(id) {
        Entry::Occupied(found) => found.into_mut(),
        Entry::Vacant(place) => {
            let (command, mutable) = recording.changeable(id, flag)?;
            let (launch, groups) = command.work.launched().ok_or(ZeResult::INVALID_ARGUMENT)?;
            let kernel = Arc::clone(&launch.kernel);
            let settings = launch.settings.clone();
            place.insert(Change { command, flags: mutable.flags, kernel, settings, groups })
        }
    };
    if found.flags & flag == 0 { Err(ZeResult::INVALID_ARGUMENT) } else { Ok(found) }
}

/// `zeCommandListUpdateMutableCommandSignalEventExp` (ze_api.h). Without an event the command signals none.
pub extern "C" fn update_signal_event(list: Handle<CommandList>, id: u64, signal: Handle<Event>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let signals = signal.get_optional()?;
        let mut recording = list.mutable()?.lock();
        let (command, _) = recording.changeable(id, SIGNAL_EVENT)?;
        recording.replace(id, Command { work: command.work.clone(), waits: command.waits.clone(), signals });
        Ok(())
    })
}

/// `zeCommandListUpdateMutableCommandWaitEventsExp` (ze_api.h). `INVALID_SIZE` for another number than
/// before. The command does not wait for what is NULL.
pub extern "C" fn update_wait_events(
    list: Handle<CommandList>,
    id: u64,
    count: Argument<u32>,
    events: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let mut recording = list.mutable()?.lock();
        let (command, mutable) = recording.changeable(id, WAIT_EVENTS)?;
        let waits = if events.is_null() { Vec::new() } else { events.optional_objects(count)? };
        let appended = *mutable.waits.get_or_insert(command.waits.len());
        if !events.is_null() && waits.len() != appended {
            return Err(ZeResult::INVALID_SIZE);
        }
        let waits = Wait::all(waits.into_iter().flatten());
        recording.replace(id, Command { work: command.work.clone(), waits, signals: command.signals.clone() });
        Ok(())
    })
}

/// `zeCommandListUpdateMutableCommandKernelsExp` (ze_api.h). The launch takes what is set for the new
/// kernel, and its group size, offset and number of groups stay. `INVALID_KERNEL_HANDLE` for a kernel
/// that was not named for the command.
pub extern "C" fn update_kernels(
    list: Handle<CommandList>,
    count: Argument<u32>,
    ids: In<u64>,
    kernels: In<Handle<Kernel>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        ids.check()?;
        kernels.check()?;
        let ids = ids.array(count)?;
        let kernels = kernels.objects(count)?;
        let mut recording = list.mutable()?.lock();
        let mut replaced = Vec::new();
        for (id, kernel) in ids.into_iter().zip(kernels) {
            let (command, mutable) = recording.changeable(id, KERNEL)?;
            if !mutable.kernels.iter().any(|other| Arc::ptr_eq(other, &kernel)) {
                return Err(ZeResult::INVALID_KERNEL_HANDLE);
            }
            let (launch, groups) = command.work.launched().ok_or(ZeResult::INVALID_ARGUMENT)?;
            let Settings { group, offset, .. } = launch.settings;
            let settings = Settings { group, offset, ..kernel.settings.lock().clone() };
            replaced.push((id, command.with_launch(Launch::with(&kernel, settings), groups)));
        }
        for (id, command) in replaced {
            recording.replace(id, command);
        }
        Ok(())
    })
}

/// `zeCommandListIsMutableExp` (ze_api.h).
pub extern "C" fn is_mutable(list: Handle<CommandList>, mutable: Out<u8>) -> ZeResult {
    call(|| mutable.write(u8::from(list.get()?.mutable().is_ok())))
}

impl Command {
    fn with_launch(&self, launch: Launch, groups: Extent) -> Self {
        Self { work: Work::launch(launch, groups), waits: self.waits.clone(), signals: self.signals.clone() }
    }
}
