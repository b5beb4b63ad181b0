//! One row per hooked Level Zero function.
//!
//! A row has the form of those of Unified Runtime (`ur.rs`), and the same is made from it. The slot is that in
//! `ze_<table>_dditable_t` (`ze_ddi.h` 1.17); a table only ever grew at its end ([`crate::api::Table::slots`]).
//!
//! What stands behind an IPC handle is known by the file that its descriptor refers to, because programs replace the
//! descriptor on the way to another process, and some of them all other bytes, too. So `data` is the descriptor
//! ([`crate::handle::descriptor_data`]), and the fingerprint is that of the file ([`crate::handle::file_fingerprint`]), or of
//! the exporter's descriptor if the bytes name it ([`crate::handle::named_fingerprint`]).
//! The handle of a counter-based event is passed on as it is, and its file may hold many events: it is known by its bytes.
//!
//! A descriptor is a handle, too. It is exported by a query for properties and imported by an allocation, where the chain of
//! extensions of their structure says so: `property` is then the type of that extension ([`super::constants`]).

/// Passes all rows to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! ze_functions {
    ($($sink:ident)::+) => {
        ze_functions! { @rows [$($sink)::+] }
    };
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            /// Creates a context of all devices of a driver.
            fn zeContextCreate(driver: Unseen, desc: Unseen, context: OutContext) in ZeContext[0] Creates Context;
            /// Creates a context of these devices.
            fn zeContextCreateEx(driver: Unseen, desc: Unseen, count: Unseen32, devices: Unseen, context: OutContext) in ZeContext[8] Creates Context;
            /// Destroys a context.
            fn zeContextDestroy(context: Context) in ZeContext[1] Releases Context;
            /// Allocates shared memory; like the next two, it imports memory instead if its description asks for that.
            fn zeMemAllocShared(context: Context, desc: AllocDesc, host_desc: Unseen, size: Length, alignment: Unseen, device: AnyDevice, pointer: OutPointer) in ZeMem[0] Allocates Usm;
            /// Allocates device memory.
            fn zeMemAllocDevice(context: Context, desc: AllocDesc, size: Length, alignment: Unseen, device: AnyDevice, pointer: OutPointer) in ZeMem[1] Allocates Usm;
            /// Allocates host memory.
            fn zeMemAllocHost(context: Context, desc: AllocDesc, size: Length, alignment: Unseen, pointer: OutPointer) in ZeMem[2] Allocates Usm;
            /// Frees memory.
            fn zeMemFree(context: Context, pointer: Pointer) in ZeMem[3] Frees Usm;
            /// Frees memory, as the description says.
            fn zeMemFreeExt(context: Context, desc: Desc, pointer: Pointer) in ZeMem[9] Frees Usm;
            /// Asks memory for its properties; recorded where that exports a descriptor of the memory.
            fn zeMemGetAllocProperties(context: Context, pointer: Pointer, properties: Exporting, device: Unseen) in ZeMem[4] MayExport Usm;
            /// Gets an IPC handle of memory, to be sent to another process.
            fn zeMemGetIpcHandle(context: Context, pointer: Pointer, handle: OutIpcHandle) in ZeMem[6] Exports Usm;
            /// Gets an IPC handle of memory, with a chain of properties.
            fn zeMemGetIpcHandleWithProperties(context: Context, pointer: Pointer, properties: Unseen, handle: OutIpcHandle) in ZeMem[12] Exports Usm;
            /// Makes an IPC handle of a descriptor that was exported.
            fn zeMemGetIpcHandleFromFileDescriptorExp(context: Context, descriptor: Descriptor, handle: OutIpcHandle) in ZeMemExp[0] Exports Usm;
            /// Asks an IPC handle for its descriptor.
            fn zeMemGetFileDescriptorFromIpcHandleExp(context: Context, handle: IpcHandle, descriptor: Unseen) in ZeMemExp[1] Asks Usm;
            /// Returns an IPC handle, or an exported descriptor, in the process that got it.
            fn zeMemPutIpcHandle(context: Context, handle: IpcHandle) in ZeMem[10] Puts Usm;
            /// Opens an IPC handle of another process: maps its memory.
            fn zeMemOpenIpcHandle(context: Context, device: AnyDevice, handle: IpcHandle, flags: Flags, pointer: OutPointer) in ZeMem[7] Opens Usm;
            /// Closes a mapping.
            fn zeMemCloseIpcHandle(context: Context, pointer: Pointer) in ZeMem[8] Closes Usm;
            /// Creates physical memory; its description may ask for memory that can be exported, or for the import of a descriptor.
            fn zePhysicalMemCreate(context: Context, device: AnyDevice, desc: PhysicalDesc, memory: OutObject) in ZePhysicalMem[0] Creates PhysicalMem;
            /// Destroys physical memory.
            fn zePhysicalMemDestroy(context: Context, memory: PhysicalMem) in ZePhysicalMem[1] Destroys PhysicalMem;
            /// Asks physical memory for its properties; recorded where that exports a descriptor of the memory.
            fn zePhysicalMemGetProperties(context: Context, memory: PhysicalMem, properties: Exporting) in ZePhysicalMem[2] MayExport Usm;
            /// Maps physical memory at a reserved address.
            fn zeVirtualMemMap(context: Context, pointer: Pointer, size: Length, memory: PhysicalMem, offset: Offset, access: Unseen32) in ZeVirtualMem[3] Maps PhysicalMem;
            /// Unmaps the memory that is mapped at an address.
            fn zeVirtualMemUnmap(context: Context, pointer: Pointer, size: Length) in ZeVirtualMem[4] Unmaps PhysicalMem;
            /// Creates a queue; like the functions that follow with this effect, never recorded.
            fn zeCommandQueueCreate(context: QueueContext, device: Unseen, desc: QueueDesc, queue: OutQueue) in ZeCommandQueue[0] Creates Queue;
            /// Creates an immediate command list, which is a queue too.
            fn zeCommandListCreateImmediate(context: QueueContext, device: Unseen, desc: QueueDesc, list: OutQueue) in ZeCommandList[1] Creates Queue;
            /// Creates a command list, whose handle may have been that of an immediate one.
            fn zeCommandListCreate(context: QueueContext, device: Unseen, desc: ListDesc, list: OutQueue) in ZeCommandList[0] Creates Queue;
            /// Takes the commands out of a command list; never recorded.
            fn zeCommandListReset(list: Queue) in ZeCommandList[4] Clears Queue;
            /// Executes command lists; a wait if the queue is synchronous. Recorded if one has a command on memory that has ended.
            fn zeCommandQueueExecuteCommandLists(queue: Queue, count: ListCount, lists: Lists, fence: SignalEvent) in ZeCommandQueue[2] Executes Queue;
            /// Appends a copy of memory to a command list; like all commands that follow, recorded once the process shares memory.
            fn zeCommandListAppendMemoryCopy(list: Queue, pointer: Accessed, source: CopiedFrom, size: Length, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[8] Enqueues Usm;
            /// Appends a fill of memory to a command list.
            fn zeCommandListAppendMemoryFill(list: Queue, pointer: Accessed, pattern: Unseen, pattern_size: Unseen, size: Length, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[9] Enqueues Usm;
            /// Appends a copy of a region of memory, which begins behind the addresses that are recorded.
            fn zeCommandListAppendMemoryCopyRegion(list: Queue, pointer: Accessed, region: Unseen, pitch: Unseen32, slice_pitch: Unseen32, source: CopiedFrom, source_region: Unseen, source_pitch: Unseen32, source_slice_pitch: Unseen32, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[10] Enqueues Usm;
            /// Appends a copy of memory that another context has allocated.
            fn zeCommandListAppendMemoryCopyFromContext(list: Queue, pointer: Accessed, source_context: Unseen, source: CopiedFrom, size: Length, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[11] Enqueues Usm;
            /// Appends a copy of memory, as a chain of parameters says.
            fn zeCommandListAppendMemoryCopyWithParameters(list: Queue, pointer: Accessed, source: CopiedFrom, size: Length, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[38] Enqueues Usm;
            /// Appends a fill of memory, likewise.
            fn zeCommandListAppendMemoryFillWithParameters(list: Queue, pointer: Accessed, pattern: Unseen, pattern_size: Unseen, size: Length, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[39] Enqueues Usm;
            /// Appends a migration of memory to a command list.
            fn zeCommandListAppendMemoryPrefetch(list: Queue, pointer: Accessed, size: Length) in ZeCommandList[16] Migrates Usm;
            /// Waits on the host for a command list; like all waits that follow, never recorded.
            fn zeCommandListHostSynchronize(list: Queue, timeout: Unseen) in ZeCommandList[28] Waits Queue;
            /// Waits on the host for a queue.
            fn zeCommandQueueSynchronize(queue: Queue, timeout: Unseen) in ZeCommandQueue[3] Waits Queue;
            /// Waits on the host for a fence.
            fn zeFenceHostSynchronize(fence: CommandEvent, timeout: Unseen) in ZeFence[2] Waits Queue;
            /// Asks whether a fence is signalled.
            fn zeFenceQueryStatus(fence: CommandEvent) in ZeFence[3] Waits Queue;
            /// Waits on the host for an event; recorded for shared counter-based events, if it waits without a limit.
            fn zeEventHostSynchronize(event: Event, timeout: Timeout) in ZeEvent[3] Waits Event;
            /// Asks whether an event is signalled.
            fn zeEventQueryStatus(event: CommandEvent) in ZeEvent[4] Waits Queue;
            /// Asks when a command ran, which succeeds once it has completed.
            fn zeEventQueryKernelTimestamp(event: CommandEvent, timestamp: Unseen) in ZeEvent[6] Waits Queue;
            /// Asks for more of the times of a command, likewise.
            fn zeEventQueryKernelTimestampsExt(event: CommandEvent, device: Unseen, count: Unseen, results: Unseen) in ZeEvent[7] Waits Queue;
            /// Asks for the times of a command on each tile, likewise.
            fn zeEventQueryTimestampsExp(event: CommandEvent, device: Unseen, count: Unseen, timestamps: Unseen) in ZeEventExp[0] Waits Queue;
            /// Waits on the host for all queues of a device, one of several perhaps.
            fn zeDeviceSynchronize(device: Unseen) in ZeDevice[22] Reveals Context;
            /// Gets the address at which the state of a counter-based event is.
            fn zeEventCounterBasedGetDeviceAddress(event: Unseen, value: Unseen, address: Unseen) in ZeEvent[15] Exposes Context;
            /// Waits in a command list until the commands before it have completed; like the next functions, never recorded.
            fn zeCommandListAppendBarrier(list: Queue, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[6] Signals Queue;
            /// Waits in a command list for commands on ranges of memory.
            fn zeCommandListAppendMemoryRangesBarrier(list: Queue, ranges: Unseen32, sizes: Unseen, addresses: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[7] Signals Queue;
            /// Signals an event behind the commands of a list.
            fn zeCommandListAppendSignalEvent(list: Queue, event: SignalEvent) in ZeCommandList[18] Signals Queue;
            /// Makes the commands that follow in a list wait for events.
            fn zeCommandListAppendWaitOnEvents(list: Queue, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[19] Signals Queue;
            /// Makes an event not signalled when a list is executed.
            fn zeCommandListAppendEventReset(list: Queue, event: CommandEvent) in ZeCommandList[20] Clears Event;
            /// Makes an event not signalled.
            fn zeEventHostReset(event: CommandEvent) in ZeEvent[5] Clears Event;
            /// Appends a kernel to a command list. What it accesses is not known, as of the functions that follow.
            fn zeCommandListAppendLaunchKernel(list: Queue, kernel: Unseen, groups: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[22] Orders Queue;
            /// Appends a kernel whose groups can wait for each other.
            fn zeCommandListAppendLaunchCooperativeKernel(list: Queue, kernel: Unseen, groups: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[23] Orders Queue;
            /// Appends a kernel whose number of groups is in memory.
            fn zeCommandListAppendLaunchKernelIndirect(list: Queue, kernel: Unseen, groups: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[24] Orders Queue;
            /// Appends several kernels, likewise.
            fn zeCommandListAppendLaunchMultipleKernelsIndirect(list: Queue, kernel_count: Unseen32, kernels: Unseen, launched: Unseen, groups: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[25] Orders Queue;
            /// Appends a kernel, as a chain of parameters says.
            fn zeCommandListAppendLaunchKernelWithParameters(list: Queue, kernel: Unseen, groups: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[36] Orders Queue;
            /// Appends a kernel with its arguments.
            fn zeCommandListAppendLaunchKernelWithArguments(list: Queue, kernel: Unseen, groups: UnseenSizes, group_size: UnseenSizes, arguments: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[37] Orders Queue;
            /// Appends a function of the host.
            fn zeCommandListAppendHostFunction(list: Queue, function: Unseen, data: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[51] Orders Queue;
            /// Appends a write of the time of the device.
            fn zeCommandListAppendWriteGlobalTimestamp(list: Queue, to: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[5] Orders Queue;
            /// Appends a write of the times of events.
            fn zeCommandListAppendQueryKernelTimestamps(list: Queue, event_count: Unseen32, of: Unseen, to: Unseen, offsets: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[21] Orders Queue;
            /// Appends a copy of an image.
            fn zeCommandListAppendImageCopy(list: Queue, to: Unseen, from: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[12] Orders Queue;
            /// Appends a copy of a region of an image.
            fn zeCommandListAppendImageCopyRegion(list: Queue, to: Unseen, from: Unseen, region: Unseen, source_region: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[13] Orders Queue;
            /// Appends a copy of an image to memory.
            fn zeCommandListAppendImageCopyToMemory(list: Queue, to: Unseen, from: Unseen, region: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[14] Orders Queue;
            /// Appends a copy of memory to an image.
            fn zeCommandListAppendImageCopyFromMemory(list: Queue, to: Unseen, from: Unseen, region: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[15] Orders Queue;
            /// Appends a copy of an image to memory, with pitches.
            fn zeCommandListAppendImageCopyToMemoryExt(list: Queue, to: Unseen, from: Unseen, region: Unseen, pitch: Unseen32, slice_pitch: Unseen32, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[26] Orders Queue;
            /// Appends a copy of memory to an image, with pitches.
            fn zeCommandListAppendImageCopyFromMemoryExt(list: Queue, to: Unseen, from: Unseen, region: Unseen, pitch: Unseen32, slice_pitch: Unseen32, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[27] Orders Queue;
            /// Signals semaphores that were imported.
            fn zeCommandListAppendSignalExternalSemaphoreExt(list: Queue, semaphore_count: Unseen32, semaphores: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[34] Orders Queue;
            /// Waits for such semaphores.
            fn zeCommandListAppendWaitExternalSemaphoreExt(list: Queue, semaphore_count: Unseen32, semaphores: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[35] Orders Queue;
            /// Appends the commands of command lists to an immediate one.
            fn zeCommandListImmediateAppendCommandListsExp(list: Queue, list_count: Unseen32, lists: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandListExp[1] Orders Queue;
            /// Appends the commands of command lists, as a chain of parameters says.
            fn zeCommandListImmediateAppendCommandListsWithParameters(list: Queue, list_count: Unseen32, lists: Unseen, parameters: Unseen, signal: SignalEvent, count: AwaitedCount, events: AwaitedEvents) in ZeCommandList[40] Orders Queue;
            /// Gives a command a number, by which the program can change what it signals and waits for.
            fn zeCommandListGetNextCommandIdExp(list: Unseen, desc: Unseen, number: Unseen) in ZeCommandListExp[2] Exposes Context;
            /// Gives a command such a number, with the kernels that it may become.
            fn zeCommandListGetNextCommandIdWithKernelsExp(list: Unseen, desc: Unseen, kernel_count: Unseen32, kernels: Unseen, number: Unseen) in ZeCommandListExp[6] Exposes Context;
            /// Copies a command list.
            fn zeCommandListCreateCloneExp(list: Unseen, clone: Unseen) in ZeCommandListExp[0] Exposes Context;
            /// Begins to capture the commands of a list in a graph.
            fn zeCommandListBeginGraphCaptureExt(list: Unseen, parameters: Unseen) in ZeCommandList[45] Exposes Context;
            /// Begins to capture the commands of a list in this graph.
            fn zeCommandListBeginCaptureIntoGraphExt(list: Unseen, graph: Unseen, parameters: Unseen) in ZeCommandList[46] Exposes Context;
            /// Creates a counter-based event; one with the IPC flag can be shared.
            fn zeEventCounterBasedCreate(context: Context, device: AnyDevice, desc: Desc, event: OutObject) in ZeEvent[11] Creates Event;
            /// Destroys an event; recorded for shared events only.
            fn zeEventDestroy(event: Event) in ZeEvent[1] Destroys Event;
            /// Gets an IPC handle of a counter-based event, to be sent to another process. Nothing returns it.
            fn zeEventCounterBasedGetIpcHandle(event: Event, handle: OutHandleBytes) in ZeEvent[12] Exports Event;
            /// Opens an IPC handle of another process as an event.
            fn zeEventCounterBasedOpenIpcHandle(context: Context, handle: HandleBytes, event: OutObject) in ZeEvent[13] Opens Event;
            /// Closes an event that was opened.
            fn zeEventCounterBasedCloseIpcHandle(event: Event) in ZeEvent[14] Closes Event;
            /// Creates an event pool; one with the IPC flag can be shared.
            fn zeEventPoolCreate(context: Context, desc: Desc, count: Unseen32, devices: Unseen, pool: OutObject) in ZeEventPool[0] Creates EventPool;
            /// Destroys an event pool.
            fn zeEventPoolDestroy(pool: ZePool) in ZeEventPool[1] Destroys EventPool;
            /// Gets an IPC handle of an event pool, to be sent to another process.
            fn zeEventPoolGetIpcHandle(pool: ZePool, handle: OutIpcHandle) in ZeEventPool[2] Exports EventPool;
            /// Opens an IPC handle of another process as an event pool.
            fn zeEventPoolOpenIpcHandle(context: Context, handle: IpcHandle, pool: OutObject) in ZeEventPool[3] Opens EventPool;
            /// Closes an event pool that was opened.
            fn zeEventPoolCloseIpcHandle(pool: ZePool) in ZeEventPool[4] Closes EventPool;
            /// Returns an IPC handle of an event pool in the process that got it.
            fn zeEventPoolPutIpcHandle(context: Context, handle: IpcHandle) in ZeEventPool[5] Puts EventPool;
            /// Gets the IPC handles of all tiles of memory; the first one is recorded.
            fn zexMemGetIpcHandles(context: Context, pointer: Pointer, count: Unseen, handles: OutIpcHandles) in ZeExtension[0] Exports Usm;
            /// Opens the IPC handles of all tiles of memory; the first one is recorded.
            fn zexMemOpenIpcHandles(context: Context, device: AnyDevice, count: Count, handles: IpcHandles, flags: Flags, pointer: OutPointer) in ZeExtension[1] Opens Usm;
            /// `zeEventCounterBasedCreate`, by the name that it has in Intel's driver.
            fn zexCounterBasedEventCreate2(context: Context, device: AnyDevice, desc: Desc, event: OutObject) in ZeExtension[2] Creates Event;
            /// `zeEventCounterBasedGetIpcHandle`, likewise.
            fn zexCounterBasedEventGetIpcHandle(event: Event, handle: OutHandleBytes) in ZeExtension[3] Exports Event;
            /// `zeEventCounterBasedOpenIpcHandle`, likewise.
            fn zexCounterBasedEventOpenIpcHandle(context: Context, handle: HandleBytes, event: OutObject) in ZeExtension[4] Opens Event;
            /// `zeEventCounterBasedCloseIpcHandle`, likewise.
            fn zexCounterBasedEventCloseIpcHandle(event: Event) in ZeExtension[5] Closes Event;
        }
    };
}

/// The tables of a driver (`ze_ddi.h` 1.17), with the number of slots since each minor version of the API.
#[macro_export]
#[rustfmt::skip]
macro_rules! ze_tables {
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            level_zero {
                ZeMem "ze_mem_dditable_t" "zeGetMemProcAddrTable" [(0, 9), (3, 10), (6, 11), (9, 12), (15, 13)];
                ZeContext "ze_context_dditable_t" "zeGetContextProcAddrTable" [(0, 8), (1, 9)];
                ZeEventPool "ze_event_pool_dditable_t" "zeGetEventPoolProcAddrTable" [(0, 5), (6, 6), (9, 8)];
                ZeCommandList "ze_command_list_dditable_t" "zeGetCommandListProcAddrTable" [(0, 26), (3, 28), (6, 29), (9, 34), (12, 36), (14, 38), (16, 41), (17, 52)];
                ZeCommandQueue "ze_command_queue_dditable_t" "zeGetCommandQueueProcAddrTable" [(0, 4), (9, 6), (17, 9)];
                ZeFence "ze_fence_dditable_t" "zeGetFenceProcAddrTable" [(0, 5)];
                ZeEvent "ze_event_dditable_t" "zeGetEventProcAddrTable" [(0, 7), (6, 8), (9, 11), (15, 16), (17, 17)];
                ZeEventExp "ze_event_exp_dditable_t" "zeGetEventExpProcAddrTable" [(2, 1)];
                ZeDevice "ze_device_dditable_t" "zeGetDeviceProcAddrTable" [(0, 14), (1, 15), (2, 17), (3, 18), (7, 19), (12, 21), (13, 22), (14, 23), (15, 24), (16, 27), (17, 28)];
                ZeMemExp "ze_mem_exp_dditable_t" "zeGetMemExpProcAddrTable" [(6, 2), (7, 4)];
                ZeCommandListExp "ze_command_list_exp_dditable_t" "zeGetCommandListExpProcAddrTable" [(9, 6), (10, 8), (17, 9)];
                ZePhysicalMem "ze_physical_mem_dditable_t" "zeGetPhysicalMemProcAddrTable" [(0, 2), (15, 3)];
                ZeVirtualMem "ze_virtual_mem_dditable_t" "zeGetVirtualMemProcAddrTable" [(0, 7)];
                ZeExtension "the functions that zeDriverGetExtensionFunctionAddress names" "zeGetDriverProcAddrTable";
            }
        }
    };
}
