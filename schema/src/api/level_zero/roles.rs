//! The roles of parameters that only functions of Level Zero have.

use super::structures;
use crate::api::common_roles::{Null, Role, Sources};
use crate::handle::descriptor_data;
use crate::values::Values;

roles! {
    /// A `ze_event_pool_handle_t`.
    ZePool(usize) enter object null Handle in object;
    /// A `ze_device_handle_t`, or null.
    AnyDevice(usize) enter device;
    /// A `ze_ipc_mem_handle_t *` or `ze_ipc_event_pool_handle_t *` that receives an IPC handle.
    OutIpcHandle(usize) absent data structure OUT_IPC_HANDLE null Pointer in data;
    /// A `ze_device_mem_alloc_desc_t *` or `ze_host_mem_alloc_desc_t *`.
    AllocDesc(usize) structure EXTENDED;
    /// A `ze_ipc_mem_handle_t *` to IPC handles, an input.
    IpcHandles(usize) structure IPC_HANDLES;
    /// A `ze_memory_allocation_properties_t *` or `ze_physical_mem_properties_t *`. The call is recorded if the
    /// extensions ask for a descriptor.
    Exporting(usize) structure EXPORTING;
    /// A `ze_command_queue_desc_t *`.
    QueueDesc(usize) structure QUEUE_DESC;
    /// A `ze_command_list_desc_t *`, of a list that is executed later.
    ListDesc(usize) structure LIST_DESC;
    /// A `ze_event_handle_t` or `ze_fence_handle_t` that is signalled behind what the call enqueues, or null.
    SignalEvent(usize) structure SIGNAL_EVENT;
    /// How many events a command waits for.
    AwaitedCount(u32) structure WAIT_COUNT;
    /// A `ze_event_handle_t *` to so many, or null.
    AwaitedEvents(usize) structure WAIT_LIST;
    /// How many command lists a call executes.
    ListCount(u32) source count;
    /// A `ze_command_list_handle_t *` to so many.
    Lists(usize) structure LISTS;
    /// A `ze_physical_mem_desc_t *`.
    PhysicalDesc(usize) structure PHYSICAL_DESC;
    /// How many nanoseconds a call waits. One with a limit is not recorded, because programs poll in that way.
    Timeout(u64) {
        #[inline]
        fn watched(self) -> bool {
            self.0 == u64::MAX
        }
    };
    /// A `ze_ipc_mem_handle_t *` that receives IPC handles, or null in a call that asks only how many there are.
    OutIpcHandles(usize) structure OUT_IPC_HANDLE {
        #[inline]
        fn watched(self) -> bool {
            self.0 != 0
        }
    };
    /// An exported descriptor, in a `uint64_t`.
    Descriptor(u64) {
        fn enter(self, values: &mut Values) {
            values.data = Some(descriptor_data(self.0 as u32));
        }
    };
}

/// A `ze_ipc_mem_handle_t` or `ze_ipc_event_pool_handle_t`, which C passes by value. Its first four bytes are a
/// descriptor. Intel's driver also writes the process that exported it, and the descriptor as the get returned it,
/// which shows whether a program has stored another one (`IpcOpaqueMemoryData` in its `context.h`). An older driver
/// does not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    /// Its bytes, in the order of the machine.
    pub words: [u64; 8],
}

impl Role for IpcHandle {
    fn of_word(word: u64) -> Self {
        Self { words: [word, 0, 0, 0, 0, 0, 0, 0] }
    }

    #[inline]
    fn enter(self, values: &mut Values) {
        let [first, _, third, fourth, ..] = self.words;
        let exporter = third as u32;
        let exported = (third >> 48 | fourth << 16) as u32;
        values.data = Some(descriptor_data(first as u32));
        if exporter != 0 {
            values.exporter = Some(exporter.into());
            values.exported = Some(exported).filter(|number| *number != 0).map(descriptor_data);
        }
    }
}
