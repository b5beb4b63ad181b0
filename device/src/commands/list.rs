//! Command lists and the entry points about them, except those that append commands (`append`).
//!
//! A regular list records commands, and a queue executes them later; an immediate list submits each command to its
//! stream at once, unless it is captured (`capture`). All lists execute in order, also those that need not, so a
//! barrier needs no work. Must never wait for work in an append, unless the list is synchronous.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::commands::engine::{Priority, Queue};
use crate::commands::stream::{Command, Stream, Wait};
use crate::commands::{capture, graph, recording::Recording};
use crate::discovery::{context::Context, device::Device, properties::QueueGroup};
use crate::events::event::Event;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{Base, CommandListDesc, CommandQueueDesc, stype};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown, getters};
use crate::ffi::{Argument, In, Out};
use crate::platform::deadline::Deadline;

/// `ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS`.
const SYNCHRONOUS: u32 = 1;
/// `ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS`, the last mode of ze_api.h.
const ASYNCHRONOUS: u32 = 2;

/// The object of a `ze_command_list_handle_t`.
pub struct CommandList {
    context: Handle<Context>,
    device: Arc<Device>,
    pub(crate) ordinal: u32,
    body: Body,
    /// The number of the capture that the list is a part of. 0 for none.
    capture: AtomicU64,
}

enum Body {
    Immediate { stream: Arc<Stream>, attributes: QueueAttributes },
    Regular { recording: Mutex<Recording>, flags: u32, mutable: bool },
}

/// What a queue or an immediate list was created with (`ze_command_queue_desc_t`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueAttributes {
    pub queue: Queue,
    pub flags: u32,
    pub mode: u32,
    pub priority: Priority,
}

impl QueueAttributes {
    /// Those of a descriptor: `INVALID_ARGUMENT` or `INVALID_ENUMERATION`.
    pub(crate) fn from_descriptor(desc: &CommandQueueDesc) -> Outcome<Self> {
        let CommandQueueDesc { ordinal, index, flags, mode, priority, .. } = *desc;
        if index >= QueueGroup::get(ordinal)?.queues {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        if mode > ASYNCHRONOUS {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let priority = Priority::from_number(priority).ok_or(ZeResult::INVALID_ENUMERATION)?;
        Ok(Self { queue: Queue { ordinal, index }, flags, mode, priority })
    }

    /// Whether an append or an execution returns after the work.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.mode == SYNCHRONOUS
    }
}

object!(CommandList);

impl CommandList {
    /// Records a command in a regular list, or submits it to the stream of an immediate one: `INVALID_ARGUMENT` if the
    /// list is closed, `INVALID_COMMAND_LIST_TYPE` for a kernel in a list for copies, or an error of
    /// [`capture::record`].
    pub(crate) fn append(self: &Arc<Self>, command: Command) -> Outcome {
        if command.work.runs_kernels() && !QueueGroup::get(self.ordinal)?.runs_kernels() {
            return Err(ZeResult::INVALID_COMMAND_LIST_TYPE);
        }
        self.append_all(&[Arc::new(command)])
    }

    /// Appends several commands, with no other command between them.
    pub(crate) fn append_all(self: &Arc<Self>, commands: &[Arc<Command>]) -> Outcome {
        if capture::record(self, commands)? { Ok(()) } else { self.append_now(commands) }
    }

    /// Appends several commands without recording them in a capture.
    pub(super) fn append_now(&self, commands: &[Arc<Command>]) -> Outcome {
        match &self.body {
            Body::Immediate { stream, attributes } => {
                let ticket = stream.submit(commands, None)?;
                if attributes.is_synchronous() {
                    stream.wait(ticket, Deadline::NEVER);
                }
                Ok(())
            }
            Body::Regular { recording, .. } => recording.lock().append(commands),
        }
    }

    /// Whether it can be captured: an asynchronous immediate list.
    pub(super) fn can_be_captured(&self) -> bool {
        self.attributes().is_ok_and(|attributes| !attributes.is_synchronous())
    }

    /// The number of the capture that it is a part of. 0 for none.
    pub(super) fn capture(&self) -> u64 {
        self.capture.load(Ordering::Acquire)
    }

    /// Makes it a part of a capture, or of none with 0.
    pub(super) fn set_capture(&self, number: u64) {
        self.capture.store(number, Ordering::Release);
    }

    /// `GRAPH_CAPTURE_UNSUPPORTED` for a list that is captured.
    fn check_not_captured(&self) -> Outcome {
        if self.capture() == 0 { Ok(()) } else { Err(ZeResult::GRAPH_CAPTURE_UNSUPPORTED) }
    }

    /// `INVALID_SIZE` for a fill pattern of this size in bytes, if the queue group takes none that large.
    pub(crate) fn check_pattern(&self, size: usize) -> Outcome {
        if size > QueueGroup::get(self.ordinal)?.largest_pattern { Err(ZeResult::INVALID_SIZE) } else { Ok(()) }
    }

    /// What an immediate list was created with: `INVALID_ARGUMENT` for a regular one.
    fn attributes(&self) -> Outcome<QueueAttributes> {
        match &self.body {
            Body::Immediate { attributes, .. } => Ok(*attributes),
            Body::Regular { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    }

    /// The commands of a closed regular list: `INVALID_ARGUMENT` for any other list.
    pub(crate) fn recorded(&self) -> Outcome<Vec<Arc<Command>>> {
        match &self.body {
            Body::Regular { recording, .. } => recording.lock().closed(),
            Body::Immediate { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    }

    /// What a mutable list has recorded: `INVALID_ARGUMENT` for any other list.
    pub(super) fn mutable(&self) -> Outcome<&Mutex<Recording>> {
        match &self.body {
            Body::Regular { recording, mutable: true, .. } => Ok(recording),
            Body::Regular { .. } | Body::Immediate { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    }
}

impl Drop for CommandList {
    fn drop(&mut self) {
        if let Body::Immediate { stream, .. } = &self.body {
            stream.close();
        }
    }
}

/// `zeCommandListCreate` (ze_api.h).
pub extern "C" fn create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<CommandListDesc>,
    list: Out<Handle<CommandList>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        let CommandListDesc { command_queue_group_ordinal: ordinal, flags, .. } = desc.read()?;
        QueueGroup::get(ordinal)?;
        let mutable = desc.has_next(stype::MUTABLE_COMMAND_LIST_EXP_DESC);
        let body = Body::Regular { recording: Mutex::default(), flags, mutable };
        register(CommandList { context, device, ordinal, body, capture: AtomicU64::new(0) }, list)
    })
}

/// `zeCommandListCreateImmediate` (ze_api.h). The default mode is asynchronous.
pub extern "C" fn create_immediate(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<CommandQueueDesc>,
    list: Out<Handle<CommandList>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        let attributes = QueueAttributes::from_descriptor(&desc.read()?)?;
        let stream = Stream::new(Arc::clone(&device), attributes.queue, attributes.priority);
        let body = Body::Immediate { stream, attributes };
        let ordinal = attributes.queue.ordinal;
        register(CommandList { context, device, ordinal, body, capture: AtomicU64::new(0) }, list)
    })
}

/// `zeCommandListDestroy` (ze_api.h). Work in flight still completes. A capture that began with the
/// list ends, and its graph is invalid.
pub extern "C" fn destroy(list: Handle<CommandList>) -> ZeResult {
    call_teardown(|| {
        if let Some(graph) = capture::leave(&list.retire()?) {
            graph::abandon(&graph);
        }
        Ok(())
    })
}

/// `zeCommandListClose` (ze_api.h). An immediate list stays open. `INVALID_ARGUMENT` if a launch was
/// changed into one that cannot run.
pub extern "C" fn close(list: Handle<CommandList>) -> ZeResult {
    call(|| match &list.get()?.body {
        Body::Regular { recording, .. } => recording.lock().close(),
        Body::Immediate { .. } => Ok(()),
    })
}

/// `zeCommandListReset` (ze_api.h). What was appended to an immediate list is still executed.
/// `GRAPH_CAPTURE_UNSUPPORTED` while it is captured.
pub extern "C" fn reset(list: Handle<CommandList>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        list.check_not_captured()?;
        if let Body::Regular { recording, .. } = &list.body {
            let before = std::mem::take(&mut *recording.lock());
            drop(before);
        }
        Ok(())
    })
}

/// `zeCommandListHostSynchronize` (ze_api.h). `timeout` is in nanoseconds; `NOT_READY` when it expires,
/// `INVALID_ARGUMENT` for a regular list, `GRAPH_CAPTURE_UNSUPPORTED` for one that is captured.
pub extern "C" fn host_synchronize(list: Handle<CommandList>, timeout: u64) -> ZeResult {
    call(|| {
        let list = list.get()?;
        list.check_not_captured()?;
        match &list.body {
            Body::Immediate { stream, .. } if stream.synchronize(Deadline::after(timeout)) => Ok(()),
            Body::Immediate { .. } => Err(ZeResult::NOT_READY),
            Body::Regular { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    })
}

getters! {
    zeCommandListGetDeviceHandle: get_device_handle(list: CommandList) -> Handle<Device> { Handle::from_object(&list.device) }
    zeCommandListGetContextHandle: get_context_handle(list: CommandList) -> Handle<Context> { list.context }
    zeCommandListGetOrdinal: get_ordinal(list: CommandList) -> u32 { list.ordinal }
    /// `INVALID_ARGUMENT` for an immediate list, whose flags are those of a queue.
    zeCommandListGetFlags: get_flags(list: CommandList) -> u32 {
        match list.body {
            Body::Regular { flags, .. } => flags,
            Body::Immediate { .. } => return Err(ZeResult::INVALID_ARGUMENT),
        }
    }
    zeCommandListImmediateGetIndex: immediate_get_index(list: CommandList) -> u32 { list.attributes()?.queue.index }
    zeCommandListImmediateGetFlags: immediate_get_flags(list: CommandList) -> u32 { list.attributes()?.flags }
    zeCommandListImmediateGetMode: immediate_get_mode(list: CommandList) -> u32 { list.attributes()?.mode }
    zeCommandListImmediateGetPriority: immediate_get_priority(list: CommandList) -> u32 {
        list.attributes()?.priority.number()
    }
    zeCommandListIsImmediate: is_immediate(list: CommandList) -> u8 {
        u8::from(matches!(list.body, Body::Immediate { .. }))
    }
}

/// `zeCommandListImmediateAppendCommandListsExp` (ze_api.h). Waits before the first command and signals after the last.
/// `INVALID_COMMAND_LIST_TYPE` for lists of a queue group that is not alike.
pub extern "C" fn immediate_append_command_lists(
    list: Handle<CommandList>,
    count: Argument<u32>,
    lists: In<Handle<CommandList>>,
    signal: Handle<Event>,
    wait_count: Argument<u32>,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        list.attributes()?;
        let waits = Wait::all(waits.objects(wait_count)?);
        let signals = signal.get_optional()?;
        let mut commands = vec![Arc::new(Command::waiting(waits))];
        for regular in lists.objects(count)? {
            if !QueueGroup::are_alike(regular.ordinal, list.ordinal) {
                return Err(ZeResult::INVALID_COMMAND_LIST_TYPE);
            }
            commands.extend(regular.recorded()?);
        }
        commands.push(Arc::new(Command::signalling(signals)));
        list.append_all(&commands)
    })
}

/// `zeCommandListImmediateAppendCommandListsWithParameters` (ze_api.h). No extension is known:
/// `UNSUPPORTED_FEATURE` for any.
pub extern "C" fn immediate_append_command_lists_with_parameters(
    list: Handle<CommandList>,
    count: Argument<u32>,
    lists: In<Handle<CommandList>>,
    extensions: In<Base>,
    signal: Handle<Event>,
    wait_count: Argument<u32>,
    waits: In<Handle<Event>>,
) -> ZeResult {
    match call(|| extensions.check_no_extension().and_then(|()| lists.check())) {
        ZeResult::SUCCESS => immediate_append_command_lists(list, count, lists, signal, wait_count, waits),
        error => error,
    }
}

fn register(list: CommandList, to: Out<Handle<CommandList>>) -> Outcome {
    to.check()?;
    to.write(Handle::register(Arc::new(list)))
}
