//! Command queues, which execute regular command lists.
//!
//! Each queue has a stream. Must never execute a list that is not closed.

use std::sync::Arc;

use crate::commands::fence::Fence;
use crate::commands::list::{CommandList, QueueAttributes};
use crate::commands::stream::{self, Stream};
use crate::discovery::{context::Context, device::Device, properties::QueueGroup};
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{ZeResult, call, call_teardown, getters};
use crate::ffi::{Argument, In, Out, layout::CommandQueueDesc};
use crate::platform::deadline::Deadline;

/// The object of a `ze_command_queue_handle_t`.
pub struct CommandQueue {
    stream: Arc<Stream>,
    attributes: QueueAttributes,
}

object!(CommandQueue);

impl Drop for CommandQueue {
    fn drop(&mut self) {
        self.stream.close();
    }
}

/// `zeCommandQueueCreate` (ze_api.h). The default mode is asynchronous.
pub extern "C" fn create(
    context: Handle<Context>,
    device: Handle<Device>,
    desc: In<CommandQueueDesc>,
    queue: Out<Handle<CommandQueue>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        let attributes = QueueAttributes::from_descriptor(&desc.read()?)?;
        queue.check()?;
        let stream = Stream::new(device, attributes.queue, attributes.priority);
        queue.write(Handle::register(Arc::new(CommandQueue { stream, attributes })))
    })
}

/// `zeCommandQueueDestroy` (ze_api.h). Work in flight still completes.
pub extern "C" fn destroy(queue: Handle<CommandQueue>) -> ZeResult {
    call_teardown(|| queue.retire().map(drop))
}

/// `zeCommandQueueExecuteCommandLists` (ze_api.h). `INVALID_ARGUMENT` for a list that is not closed or is immediate,
/// `INVALID_COMMAND_LIST_TYPE` for one of a queue group that is not alike.
pub extern "C" fn execute_command_lists(
    queue: Handle<CommandQueue>,
    count: Argument<u32>,
    lists: In<Handle<CommandList>>,
    fence: Handle<Fence>,
) -> ZeResult {
    call(|| {
        let queue = queue.get()?;
        lists.check()?;
        if count.value() == 0 {
            return Err(ZeResult::INVALID_SIZE);
        }
        let fence = fence.get_optional()?;
        let mut commands = Vec::new();
        for list in lists.objects(count)? {
            if !QueueGroup::are_alike(list.ordinal, queue.attributes.queue.ordinal) {
                return Err(ZeResult::INVALID_COMMAND_LIST_TYPE);
            }
            commands.extend(list.recorded()?);
        }
        let ticket = queue.stream.submit(&commands, fence.map(|fence| Arc::clone(&fence.signal)))?;
        if queue.attributes.is_synchronous() {
            queue.stream.wait(ticket, Deadline::NEVER);
        }
        Ok(())
    })
}

/// `zeCommandQueueSynchronize` (ze_api.h). `timeout` is in nanoseconds; `NOT_READY` when it expires.
pub extern "C" fn synchronize(queue: Handle<CommandQueue>, timeout: u64) -> ZeResult {
    call(|| {
        let done = queue.get()?.stream.synchronize(Deadline::after(timeout));
        if done { Ok(()) } else { Err(ZeResult::NOT_READY) }
    })
}

getters! {
    zeCommandQueueGetOrdinal: get_ordinal(queue: CommandQueue) -> u32 { queue.attributes.queue.ordinal }
    zeCommandQueueGetIndex: get_index(queue: CommandQueue) -> u32 { queue.attributes.queue.index }
    zeCommandQueueGetFlags: get_flags(queue: CommandQueue) -> u32 { queue.attributes.flags }
    zeCommandQueueGetMode: get_mode(queue: CommandQueue) -> u32 { queue.attributes.mode }
    zeCommandQueueGetPriority: get_priority(queue: CommandQueue) -> u32 { queue.attributes.priority.number() }
}

/// `zeDeviceSynchronize` (ze_api.h). Waits for everything submitted so far to any queue or immediate list of the
/// device and of its sub-devices.
pub extern "C" fn device_synchronize(device: Handle<Device>) -> ZeResult {
    call(|| {
        stream::synchronize_device(&*device.get()?);
        Ok(())
    })
}
