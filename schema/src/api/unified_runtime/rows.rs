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
            fn urEnqueueKernelLaunchWithArgsExp(queue: Queue, kernel: Unseen, dimensions: Unseen32, offset: Unseen, global: Unseen, local: Unseen, argument_count: KernelArgCount, arguments: KernelArgs, properties: Unseen, count: Unseen32, events: Unseen, event: Unseen) in EnqueueExp[0] Launches Usm;
            /// Enqueues an allocation of device USM.
            fn urEnqueueUSMDeviceAllocExp(queue: Unseen, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: Unseen, pointer: OutPointer, event: Unseen) in EnqueueExp[1] Allocates Usm;
            /// Enqueues an allocation of shared USM.
            fn urEnqueueUSMSharedAllocExp(queue: Unseen, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: Unseen, pointer: OutPointer, event: Unseen) in EnqueueExp[2] Allocates Usm;
            /// Enqueues an allocation of host USM.
            fn urEnqueueUSMHostAllocExp(queue: Unseen, pool: FromPool, size: Length, properties: Unseen, count: WaitCount, events: Unseen, pointer: OutPointer, event: Unseen) in EnqueueExp[3] Allocates Usm;
            /// Enqueues a free of USM.
            fn urEnqueueUSMFreeExp(queue: Unseen, pool: FromPool, pointer: Pointer, count: WaitCount, events: Unseen, event: Unseen) in EnqueueExp[4] FreesLater Usm;
            /// Creates a reusable event; one with the IPC flag can be shared.
            fn urEventCreateExp(context: Context, device: Device, desc: Desc, event: OutObject) in EventExp[0] Creates Event;
            /// Asks an event for a property; like all functions of events that follow, recorded for shared events only.
            fn urEventGetInfo(event: Event, property: Property, size: ValueSize, value: OutValue, size_ret: OutValueSize) in Event[0] Asks Event;
            /// Waits on the host for events.
            fn urEventWait(count: Count, events: Events) in Event[2] Waits Event;
            /// Adds a reference to an event.
            fn urEventRetain(event: Event) in Event[3] Retains Event;
            /// Releases a reference to an event; the last one ends it, or closes it if it was opened.
            fn urEventRelease(event: Event) in Event[4] Releases Event;
            /// Makes a queue wait for events, and signals a reusable event behind them.
            fn urEnqueueEventsWaitWithBarrierExt(queue: Unseen, properties: Unseen, count: Unseen32, events: Unseen, event: InOutEvent) in Enqueue[24] Signals Event;
            /// Makes a queue fill memory; like all commands that follow, recorded once the process shares memory.
            fn urEnqueueUSMFill(queue: Queue, pointer: Accessed, pattern_size: Unseen, pattern: Unseen, size: Length, count: Unseen32, events: Unseen, event: Unseen) in Enqueue[14] Enqueues Usm;
            /// Makes a queue copy memory.
            fn urEnqueueUSMMemcpy(queue: Queue, value: Blocking, pointer: Accessed, source: CopiedFrom, size: Length, count: Unseen32, events: Unseen, event: Unseen) in Enqueue[15] Enqueues Usm;
            /// Makes a queue migrate memory.
            fn urEnqueueUSMPrefetch(queue: Queue, pointer: Accessed, size: Length, flags: Unseen32, count: Unseen32, events: Unseen, event: Unseen) in Enqueue[16] Enqueues Usm;
            /// Enqueues a fill of rows of USM; `size` is the length of a row.
            fn urEnqueueUSMFill2D(queue: Queue, pointer: Accessed, pitch: Unseen, pattern_size: Unseen, pattern: Unseen, size: Length, height: Unseen, count: Unseen32, events: Unseen, event: Unseen) in Enqueue[18] Enqueues Usm;
            /// Enqueues a copy of rows of USM; `size` is the length of a row.
            fn urEnqueueUSMMemcpy2D(queue: Queue, value: Blocking, pointer: Accessed, pitch: Unseen, source: CopiedFrom, source_pitch: Unseen, size: Length, height: Unseen, count: Unseen32, events: Unseen, event: Unseen) in Enqueue[19] Enqueues Usm;
            /// Creates a queue; like the next function, never recorded.
            fn urQueueCreate(context: QueueContext, device: Device, properties: Unseen, queue: OutQueue) in Queue[1] Creates Queue;
            /// Creates a queue of a native handle.
            fn urQueueCreateWithNativeHandle(native: Unseen, context: QueueContext, device: Unseen, properties: Unseen, queue: OutQueue) in Queue[5] Creates Queue;
            /// Waits on the host for a queue; like all waits that follow, never recorded.
            fn urQueueFinish(queue: Unseen) in Queue[6] Waits Queue;
            /// Gets the native handle of a queue, by which the program can wait.
            fn urQueueGetNativeHandle(queue: Unseen, desc: Unseen, native: Unseen) in Queue[4] Waits Queue;
            /// Asks when a command ran, which succeeds once it has completed.
            fn urEventGetProfilingInfo(event: Unseen, property: Unseen32, size: Unseen, value: Unseen, size_ret: Unseen) in Event[1] Waits Queue;
            /// Gets the native handle of an event, by which the program can wait.
            fn urEventGetNativeHandle(event: Unseen, native: Unseen) in Event[5] Waits Queue;
            /// Has a function called when a command completes.
            fn urEventSetCallback(event: Unseen, status: Unseen32, callback: Unseen, data: Unseen) in Event[7] Waits Queue;
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
            }
        }
    };
}
