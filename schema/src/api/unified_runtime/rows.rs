//! One row per hooked Unified Runtime function.
//!
//! A row is all there is to a hooked function: its C export, its slot in the adapter's table, its record in the trace
//! and its effect on the lifetime of a handle are generated from it by the macro that is passed as `$sink`.
//!
//! `fn NAME(PARAMETER: ROLE, …) in TABLE[SLOT] EFFECT KIND;`
//!
//! * the parameters have the order of C and the names of the trace fields that show them; a role ([`crate::api::role`])
//!   says how one is passed and when it can be read;
//! * `TABLE[SLOT]` is the slot in `ur_<table>_dditable_t` (`ur_ddi.h` of release 2026.2); all tables but one have only ever
//!   grown at their end ([`crate::api::Function::slot_in`]); parameters that changed between releases are listed in
//!   `signatures`;
//! * the effect ([`crate::api::Effect`]) says what a success does to the lifetime of an object of that kind.

/// Passes all rows to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! ur_functions {
    ($($sink:ident)::+) => {
        ur_functions! { @rows [$($sink)::+] }
    };
    // The rows behind `$front`, for a macro that adds rows of its own.
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            /// Releases a reference to an adapter; the last one tears the runtime down.
            fn urAdapterRelease(adapter: Adapter) in Adapter[1] Releases Adapter;
            /// Asks a device for a property; only properties of IPC support are recorded.
            fn urDeviceGetInfo(device: Device, property: IpcProperty, size: ValueSize, value: OutBool, size_ret: OutValueSize) in Device[1] Asks Device;
            /// Creates a context, which owns allocations and mappings.
            fn urContextCreate(count: Count, devices: Devices, properties: Desc, context: OutContext) in Context[0] Creates Context;
            /// Adds a reference to a context.
            fn urContextRetain(context: Context) in Context[1] Retains Context;
            /// Releases a reference to a context; the last one ends everything in it.
            fn urContextRelease(context: Context) in Context[2] Releases Context;
            /// Allocates host USM.
            fn urUSMHostAlloc(context: Context, desc: UsmDesc, pool: FromPool, size: Size, pointer: OutPointer) in USM[0] Allocates Usm;
            /// Allocates device USM.
            fn urUSMDeviceAlloc(context: Context, device: Device, desc: UsmDesc, pool: FromPool, size: Size, pointer: OutPointer) in USM[1] Allocates Usm;
            /// Allocates shared USM.
            fn urUSMSharedAlloc(context: Context, device: Device, desc: UsmDesc, pool: FromPool, size: Size, pointer: OutPointer) in USM[2] Allocates Usm;
            /// Frees USM.
            fn urUSMFree(context: Context, pointer: Pointer) in USM[3] Frees Usm;
            /// Creates a pool, from which USM is allocated.
            fn urUSMPoolCreate(context: Context, desc: Desc, pool: OutObject) in USM[5] Creates Pool;
            /// Adds a reference to a pool.
            fn urUSMPoolRetain(pool: Pool) in USM[6] Retains Pool;
            /// Releases a reference to a pool; the last one frees all memory in it.
            fn urUSMPoolRelease(pool: Pool) in USM[7] Releases Pool;
            /// Creates a pool of one device.
            fn urUSMPoolCreateExp(context: Context, device: Device, desc: Desc, pool: OutObject) in USMExp[0] Creates Pool;
            /// Destroys a pool of one device, with all memory in it.
            fn urUSMPoolDestroyExp(context: Context, device: Device, pool: Pool) in USMExp[1] Releases Pool;
            /// Gives memory of a pool that is not in use back to the system.
            fn urUSMPoolTrimToExp(context: Context, device: Device, pool: Pool, size: Length) in USMExp[7] Uses Pool;
            /// Enqueues a kernel with its arguments; recorded if one of these is a pointer to memory that the process shares.
            fn urEnqueueKernelLaunchWithArgsExp(queue: Queue, kernel: Unseen, dimensions: Unseen32, offset: Unseen, global: Unseen, local: Unseen, argument_count: KernelArgCount, arguments: KernelArgs, properties: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[0] Launches Usm;
            /// Enqueues an allocation of device USM.
            fn urEnqueueUSMDeviceAllocExp(queue: Queue, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: WaitList, pointer: OutPointer, event: OutEvent) in EnqueueExp[1] Allocates Usm;
            /// Enqueues an allocation of shared USM.
            fn urEnqueueUSMSharedAllocExp(queue: Queue, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: WaitList, pointer: OutPointer, event: OutEvent) in EnqueueExp[2] Allocates Usm;
            /// Enqueues an allocation of host USM.
            fn urEnqueueUSMHostAllocExp(queue: Queue, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: WaitList, pointer: OutPointer, event: OutEvent) in EnqueueExp[3] Allocates Usm;
            /// Enqueues a free of USM.
            fn urEnqueueUSMFreeExp(queue: Queue, pool: FromPool, pointer: Pointer, count: WaitCount, events: WaitList, event: OutEvent) in EnqueueExp[4] FreesLater Usm;
            /// Creates a reusable event; one with the IPC flag can be shared.
            fn urEventCreateExp(context: Context, device: Device, desc: Desc, event: OutObject) in EventExp[0] Creates Event;
            /// Asks an event for a property; like all functions of events that follow, recorded for shared events only.
            fn urEventGetInfo(event: Event, property: EventProperty, size: ValueSize, value: OutEventValue, size_ret: OutValueSize) in Event[0] Asks Event;
            /// Waits on the host for events.
            fn urEventWait(count: Count, events: Events) in Event[2] Waits Event;
            /// Adds a reference to an event.
            fn urEventRetain(event: Event) in Event[3] Retains Event;
            /// Releases a reference to an event; the last one ends it, or closes it if it was opened.
            fn urEventRelease(event: Event) in Event[4] Releases Event;
            /// Makes a queue wait for events, and signals a reusable event behind them.
            fn urEnqueueEventsWaitWithBarrierExt(queue: Queue, properties: Unseen, count: WaitListLength, events: WaitList, event: InOutEvent) in Enqueue[24] Signals Event;
            /// Makes a queue fill memory; like all commands that follow, recorded once the process shares memory.
            fn urEnqueueUSMFill(queue: Queue, pointer: Accessed, pattern_size: Unseen, pattern: Unseen, size: Length, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[14] Enqueues Usm;
            /// Makes a queue copy memory.
            fn urEnqueueUSMMemcpy(queue: Queue, value: Blocking, pointer: Accessed, source: CopiedFrom, size: Length, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[15] Enqueues Usm;
            /// Makes a queue migrate memory.
            fn urEnqueueUSMPrefetch(queue: Queue, pointer: Accessed, size: Length, flags: Unseen32, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[16] Migrates Usm;
            /// Enqueues a fill of rows of USM; `size` is the length of a row.
            fn urEnqueueUSMFill2D(queue: Queue, pointer: Accessed, pitch: Unseen, pattern_size: Unseen, pattern: Unseen, size: Length, height: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[18] Enqueues Usm;
            /// Enqueues a copy of rows of USM; `size` is the length of a row.
            fn urEnqueueUSMMemcpy2D(queue: Queue, value: Blocking, pointer: Accessed, pitch: Unseen, source: CopiedFrom, source_pitch: Unseen, size: Length, height: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[19] Enqueues Usm;
            /// Creates a queue; like the next function, never recorded.
            fn urQueueCreate(context: QueueContext, device: Device, properties: QueueProperties, queue: OutQueue) in Queue[1] Creates Queue;
            /// Creates a queue of a native handle.
            fn urQueueCreateWithNativeHandle(native: NativeQueue, context: QueueContext, device: Unseen, properties: Unseen, queue: OutQueue) in Queue[5] Creates Queue;
            /// Waits on the host for a queue; like all waits that follow, never recorded.
            fn urQueueFinish(queue: Queue) in Queue[6] Waits Queue;
            /// Gets the native handle of a queue, by which the program can wait and enqueue.
            fn urQueueGetNativeHandle(queue: Unseen, desc: Unseen, native: Unseen) in Queue[4] Exposes Context;
            /// Asks a queue for a property, perhaps whether all its commands have completed.
            fn urQueueGetInfo(queue: Queue, property: StateProperty, size: Unseen, value: OutState, size_ret: Unseen) in Queue[0] Asks Queue;
            /// Asks when a command ran, which may succeed only once it has completed.
            fn urEventGetProfilingInfo(event: CommandEvent, property: Unseen32, size: Unseen, value: Unseen, size_ret: Unseen) in Event[1] Reveals Queue;
            /// Gets the native handle of an event, by which the program can wait.
            fn urEventGetNativeHandle(event: Unseen, native: Unseen) in Event[5] Exposes Context;
            /// Has a function called when a command completes.
            fn urEventSetCallback(event: CommandEvent, status: Unseen32, callback: Unseen, data: Unseen) in Event[7] Reveals Queue;
            /// Makes a queue wait for events; like the functions that follow, recorded only as what orders commands.
            fn urEnqueueEventsWait(queue: Queue, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[0] Signals Queue;
            /// Makes what a queue executes later wait for events.
            fn urEnqueueEventsWaitWithBarrier(queue: Queue, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[1] Signals Queue;
            /// Makes a queue take advice on memory.
            fn urEnqueueUSMAdvise(queue: Queue, pointer: Unseen, size: Unseen, advice: Unseen32, event: OutEvent) in Enqueue[17] Signals Queue;
            /// Reads a buffer.
            fn urEnqueueMemBufferRead(queue: Queue, buffer: Unseen, value: Blocking, offset: Unseen, size: Unseen, destination: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[2] Orders Queue;
            /// Writes a buffer.
            fn urEnqueueMemBufferWrite(queue: Queue, buffer: Unseen, value: Blocking, offset: Unseen, size: Unseen, source: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[3] Orders Queue;
            /// Reads a part of a buffer.
            fn urEnqueueMemBufferReadRect(queue: Queue, buffer: Unseen, value: Blocking, buffer_origin: UnseenTriple, host_origin: UnseenTriple, region: UnseenTriple, buffer_row: Unseen, buffer_slice: Unseen, host_row: Unseen, host_slice: Unseen, destination: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[4] Orders Queue;
            /// Writes a part of a buffer.
            fn urEnqueueMemBufferWriteRect(queue: Queue, buffer: Unseen, value: Blocking, buffer_origin: UnseenTriple, host_origin: UnseenTriple, region: UnseenTriple, buffer_row: Unseen, buffer_slice: Unseen, host_row: Unseen, host_slice: Unseen, source: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[5] Orders Queue;
            /// Copies between buffers.
            fn urEnqueueMemBufferCopy(queue: Queue, from: Unseen, to: Unseen, from_offset: Unseen, to_offset: Unseen, size: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[6] Orders Queue;
            /// Copies parts of buffers.
            fn urEnqueueMemBufferCopyRect(queue: Queue, from: Unseen, to: Unseen, from_origin: UnseenTriple, to_origin: UnseenTriple, region: UnseenTriple, from_row: Unseen, from_slice: Unseen, to_row: Unseen, to_slice: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[7] Orders Queue;
            /// Fills a buffer.
            fn urEnqueueMemBufferFill(queue: Queue, buffer: Unseen, pattern: Unseen, pattern_size: Unseen, offset: Unseen, size: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[8] Orders Queue;
            /// Reads an image.
            fn urEnqueueMemImageRead(queue: Queue, image: Unseen, value: Blocking, origin: UnseenTriple, region: UnseenTriple, row: Unseen, slice: Unseen, destination: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[9] Orders Queue;
            /// Writes an image.
            fn urEnqueueMemImageWrite(queue: Queue, image: Unseen, value: Blocking, origin: UnseenTriple, region: UnseenTriple, row: Unseen, slice: Unseen, source: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[10] Orders Queue;
            /// Copies between images.
            fn urEnqueueMemImageCopy(queue: Queue, from: Unseen, to: Unseen, from_origin: UnseenTriple, to_origin: UnseenTriple, region: UnseenTriple, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[11] Orders Queue;
            /// Maps a buffer.
            fn urEnqueueMemBufferMap(queue: Queue, buffer: Unseen, value: Blocking, flags: Unseen32, offset: Unseen, size: Unseen, count: WaitListLength, events: WaitList, event: OutEvent, mapped: Unseen) in Enqueue[12] Orders Queue;
            /// Unmaps a buffer or an image.
            fn urEnqueueMemUnmap(queue: Queue, buffer: Unseen, mapped: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[13] Orders Queue;
            /// Writes a global variable of a program.
            fn urEnqueueDeviceGlobalVariableWrite(queue: Queue, program: Unseen, name: Unseen, value: Blocking, size: Unseen, offset: Unseen, source: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[20] Orders Queue;
            /// Reads a global variable of a program.
            fn urEnqueueDeviceGlobalVariableRead(queue: Queue, program: Unseen, name: Unseen, value: Blocking, size: Unseen, offset: Unseen, destination: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[21] Orders Queue;
            /// Reads from a pipe of a kernel.
            fn urEnqueueReadHostPipe(queue: Queue, program: Unseen, name: Unseen, value: Blocking, destination: Unseen, size: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[22] Orders Queue;
            /// Writes to a pipe of a kernel.
            fn urEnqueueWriteHostPipe(queue: Queue, program: Unseen, name: Unseen, value: Blocking, source: Unseen, size: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[23] Orders Queue;
            /// Enqueues a kernel whose arguments were set before. Release 2026.2 has no such function; in the longer table of those before, it is the first.
            fn urEnqueueKernelLaunch(queue: Queue, kernel: Unseen, dimensions: Unseen32, offset: Unseen, global: Unseen, local: Unseen, properties: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in Enqueue[25] Orders Queue;
            /// Records when a queue gets there.
            fn urEnqueueTimestampRecordingExp(queue: Queue, value: Blocking, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[5] Orders Queue;
            /// Enqueues a command buffer.
            fn urEnqueueCommandBufferExp(queue: Queue, buffer: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[6] Orders Queue;
            /// Has a queue call a function of the program.
            fn urEnqueueHostTaskExp(queue: Queue, function: Unseen, data: Unseen, properties: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[7] Reveals Queue;
            /// Has a function of the program enqueue native commands.
            fn urEnqueueNativeCommandExp(queue: Queue, function: Unseen, data: Unseen, buffer_count: Unseen32, buffers: Unseen, properties: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[8] Reveals Queue;
            /// Enqueues a graph.
            fn urEnqueueGraphExp(queue: Queue, graph: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in EnqueueExp[9] Reveals Queue;
            /// Begins to capture the commands of a queue.
            fn urQueueBeginGraphCaptureExp(queue: Unseen) in QueueExp[0] Orders Context;
            /// Begins to capture the commands of a queue into a graph.
            fn urQueueBeginCaptureIntoGraphExp(queue: Unseen, graph: Unseen) in QueueExp[1] Orders Context;
            /// Makes a queue copy an image.
            fn urBindlessImagesImageCopyExp(queue: Queue, source: Unseen, destination: Unseen, source_desc: Unseen, destination_desc: Unseen, source_format: Unseen, destination_format: Unseen, region: Unseen, flags: Unseen32, types: Unseen32, count: WaitListLength, events: WaitList, event: OutEvent) in BindlessImagesExp[6] Orders Queue;
            /// Makes a queue wait for a semaphore of another interface.
            fn urBindlessImagesWaitExternalSemaphoreExp(queue: Queue, semaphore: Unseen, has_value: Unseen32, value: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in BindlessImagesExp[21] Orders Queue;
            /// Makes a queue signal a semaphore of another interface.
            fn urBindlessImagesSignalExternalSemaphoreExp(queue: Queue, semaphore: Unseen, has_value: Unseen32, value: Unseen, count: WaitListLength, events: WaitList, event: OutEvent) in BindlessImagesExp[22] Orders Queue;
            /// Creates physical memory; with the IPC flag, it can be shared.
            fn urPhysicalMemCreate(context: Context, device: Device, size: Size, properties: Desc, memory: OutObject) in PhysicalMem[0] Creates PhysicalMem;
            /// Adds a reference to physical memory.
            fn urPhysicalMemRetain(memory: PhysicalMem) in PhysicalMem[1] Retains PhysicalMem;
            /// Releases a reference to physical memory; the last one ends it.
            fn urPhysicalMemRelease(memory: PhysicalMem) in PhysicalMem[2] Releases PhysicalMem;
            /// Asks physical memory for a property.
            fn urPhysicalMemGetInfo(memory: PhysicalMem, property: Property, size: ValueSize, value: OutValue, size_ret: OutValueSize) in PhysicalMem[3] Asks PhysicalMem;
            /// Maps physical memory at a reserved address.
            fn urVirtualMemMap(context: Context, pointer: Pointer, size: Size, memory: PhysicalMem, offset: Offset, flags: Flags) in VirtualMem[3] Maps PhysicalMem;
            /// Unmaps the memory that is mapped at an address.
            fn urVirtualMemUnmap(context: Context, pointer: Pointer, size: Size) in VirtualMem[4] Unmaps PhysicalMem;
            /// Gets handle data for device USM, to be sent to another process.
            fn urIPCGetMemHandleExp(context: Context, pointer: Pointer, data: OutData, data_size: OutDataSize) in IPCExp[0] Exports Usm;
            /// Puts handle data back in the process that got them.
            fn urIPCPutMemHandleExp(context: Context, data: Data) in IPCExp[1] Puts Usm;
            /// Opens handle data of another process: maps its memory.
            fn urIPCOpenMemHandleExp(context: Context, device: Device, data: OpenedData, data_size: DataSize, pointer: OutPointer) in IPCExp[2] Opens Usm;
            /// Closes a mapping.
            fn urIPCCloseMemHandleExp(context: Context, pointer: Pointer) in IPCExp[3] Closes Usm;
            /// Gets handle data for physical memory.
            fn urIPCGetPhysMemHandleExp(context: Context, memory: PhysicalMem, data: OutData, data_size: OutDataSize) in IPCExp[4] Exports PhysicalMem;
            /// Puts handle data of physical memory back.
            fn urIPCPutPhysMemHandleExp(context: Context, data: Data) in IPCExp[5] Puts PhysicalMem;
            /// Opens handle data of another process as physical memory.
            fn urIPCOpenPhysMemHandleExp(context: Context, device: Device, data: OpenedData, data_size: DataSize, memory: OutObject) in IPCExp[6] Opens PhysicalMem;
            /// Closes physical memory that was opened: releases a reference to it.
            fn urIPCClosePhysMemHandleExp(context: Context, memory: PhysicalMem) in IPCExp[7] Closes PhysicalMem;
            /// Gets handle data for an event.
            fn urIPCGetEventHandleExp(event: Event, data: OutData, data_size: OutDataSize) in IPCExp[8] Exports Event;
            /// Puts handle data of an event back.
            fn urIPCPutEventHandleExp(context: Context, data: Data) in IPCExp[9] Puts Event;
            /// Opens handle data of another process as an event, which `urEventRelease` ends.
            fn urIPCOpenEventHandleExp(context: Context, data: OpenedData, data_size: DataSize, event: OutObject) in IPCExp[10] Opens Event;
        }
    };
}

/// The tables of adapters: the name in the rows, the structure in `ur_ddi.h`, the function that fills it. Passed on like the rows.
#[macro_export]
#[rustfmt::skip]
macro_rules! ur_tables {
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            unified_runtime {
                Adapter "ur_adapter_dditable_t" "urGetAdapterProcAddrTable";
                Context "ur_context_dditable_t" "urGetContextProcAddrTable";
                Device "ur_device_dditable_t" "urGetDeviceProcAddrTable";
                USM "ur_usm_dditable_t" "urGetUSMProcAddrTable";
                USMExp "ur_usm_exp_dditable_t" "urGetUSMExpProcAddrTable";
                IPCExp "ur_ipc_exp_dditable_t" "urGetIPCExpProcAddrTable";
                Event "ur_event_dditable_t" "urGetEventProcAddrTable";
                EventExp "ur_event_exp_dditable_t" "urGetEventExpProcAddrTable";
                PhysicalMem "ur_physical_mem_dditable_t" "urGetPhysicalMemProcAddrTable";
                VirtualMem "ur_virtual_mem_dditable_t" "urGetVirtualMemProcAddrTable";
                Enqueue "ur_enqueue_dditable_t" "urGetEnqueueProcAddrTable";
                EnqueueExp "ur_enqueue_exp_dditable_t" "urGetEnqueueExpProcAddrTable";
                Queue "ur_queue_dditable_t" "urGetQueueProcAddrTable";
                QueueExp "ur_queue_exp_dditable_t" "urGetQueueExpProcAddrTable";
                BindlessImagesExp "ur_bindless_images_exp_dditable_t" "urGetBindlessImagesExpProcAddrTable";
            }
        }
    };
}
