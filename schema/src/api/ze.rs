//! One row per hooked Level Zero function.
//!
//! A row has the form of those of Unified Runtime (`ur.rs`), and the same is made from it. The slot is that in
//! `ze_<table>_dditable_t` (`ze_ddi.h` 1.17); a table only ever grew at its end ([`crate::api::Table::slots`]).
//!
//! What stands behind an IPC handle is known by the file that its descriptor refers to, because programs replace the
//! descriptor on the way to another process, and some of them all other bytes, too. So `data` is the descriptor
//! ([`crate::handle::descriptor_data`]), and the fingerprint is that of the file ([`crate::handle::file_fingerprint`]).
//! The handle of a counter-based event is passed on as it is, and its file may hold many events: it is known by its bytes.
//!
//! A descriptor is a handle, too. It is exported by a query for properties and imported by an allocation, where the chain of
//! extensions of their structure says so: `property` is then the type of that extension ([`crate::api::constants::ze`]).

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
            /// Allocates shared memory; like the next two, it imports memory instead if its description asks for that.
            fn zeMemAllocShared(context: Context, desc: AllocDesc, host_desc: Unseen, size: Length, alignment: Unseen, device: AnyDevice, pointer: OutPointer) in ZeMem[0] makes Usm;
            /// Allocates device memory.
            fn zeMemAllocDevice(context: Context, desc: AllocDesc, size: Length, alignment: Unseen, device: AnyDevice, pointer: OutPointer) in ZeMem[1] makes Usm;
            /// Allocates host memory.
            fn zeMemAllocHost(context: Context, desc: AllocDesc, size: Length, alignment: Unseen, pointer: OutPointer) in ZeMem[2] makes Usm;
            /// Frees memory.
            fn zeMemFree(context: Context, pointer: Pointer) in ZeMem[3] ends Usm;
            /// Frees memory, as the description says.
            fn zeMemFreeExt(context: Context, desc: Unseen, pointer: Pointer) in ZeMem[9] ends Usm;
            /// Asks memory for its properties; recorded where that exports a descriptor of the memory.
            fn zeMemGetAllocProperties(context: Context, pointer: Pointer, properties: Exporting, device: Unseen) in ZeMem[4] makes MemHandle;
            /// Gets an IPC handle of memory, to be sent to another process.
            fn zeMemGetIpcHandle(context: Context, pointer: Pointer, handle: OutIpcHandle) in ZeMem[6] makes MemHandle;
            /// Gets an IPC handle of memory, with a chain of properties.
            fn zeMemGetIpcHandleWithProperties(context: Context, pointer: Pointer, properties: Unseen, handle: OutIpcHandle) in ZeMem[12] makes MemHandle;
            /// Makes an IPC handle of a descriptor that was exported.
            fn zeMemGetIpcHandleFromFileDescriptorExp(context: Context, descriptor: Descriptor, handle: OutIpcHandle) in ZeMemExp[0] makes MemHandle;
            /// Asks an IPC handle for its descriptor.
            fn zeMemGetFileDescriptorFromIpcHandleExp(context: Context, handle: IpcHandle, descriptor: Unseen) in ZeMemExp[1] asks MemHandle;
            /// Returns an IPC handle, or an exported descriptor, in the process that got it.
            fn zeMemPutIpcHandle(context: Context, handle: IpcHandle) in ZeMem[10] ends MemHandle;
            /// Opens an IPC handle of another process: maps its memory.
            fn zeMemOpenIpcHandle(context: Context, device: AnyDevice, handle: IpcHandle, flags: Flags, pointer: OutPointer) in ZeMem[7] makes Mapping;
            /// Closes a mapping.
            fn zeMemCloseIpcHandle(context: Context, pointer: Pointer) in ZeMem[8] ends Mapping;
            /// Creates physical memory; its description may ask for memory that can be exported, or for the import of a descriptor.
            fn zePhysicalMemCreate(context: Context, device: AnyDevice, desc: PhysicalDesc, memory: OutObject) in ZePhysicalMem[0] makes PhysicalMem;
            /// Destroys physical memory.
            fn zePhysicalMemDestroy(context: Context, memory: PhysicalMem) in ZePhysicalMem[1] releases PhysicalMem;
            /// Asks physical memory for its properties; recorded where that exports a descriptor of the memory.
            fn zePhysicalMemGetProperties(context: Context, memory: PhysicalMem, properties: Exporting) in ZePhysicalMem[2] makes MemHandle;
            /// Maps physical memory at a reserved address.
            fn zeVirtualMemMap(context: Context, pointer: Pointer, size: Length, memory: PhysicalMem, offset: Offset, access: Unseen32) in ZeVirtualMem[3] uses PhysicalMem;
            /// Unmaps the memory that is mapped at an address.
            fn zeVirtualMemUnmap(context: Context, pointer: Pointer, size: Length) in ZeVirtualMem[4] uses PhysicalMem;
            /// Appends a copy of memory to a command list; like all commands that follow, recorded once the process shares memory.
            fn zeCommandListAppendMemoryCopy(list: Unseen, pointer: Accessed, source: CopiedFrom, size: Length, signal: Unseen, count: Unseen32, events: Unseen) in ZeCommandList[8] uses Usm;
            /// Appends a fill of memory to a command list.
            fn zeCommandListAppendMemoryFill(list: Unseen, pointer: Accessed, pattern: Unseen, pattern_size: Unseen, size: Length, signal: Unseen, count: Unseen32, events: Unseen) in ZeCommandList[9] uses Usm;
            /// Appends a copy of a region of memory, which begins behind the addresses that are recorded.
            fn zeCommandListAppendMemoryCopyRegion(list: Unseen, pointer: Accessed, region: Unseen, pitch: Unseen32, slice_pitch: Unseen32, source: CopiedFrom, source_region: Unseen, source_pitch: Unseen32, source_slice_pitch: Unseen32, signal: Unseen, count: Unseen32, events: Unseen) in ZeCommandList[10] uses Usm;
            /// Appends a copy of memory that another context has allocated.
            fn zeCommandListAppendMemoryCopyFromContext(list: Unseen, pointer: Accessed, source_context: Unseen, source: CopiedFrom, size: Length, signal: Unseen, count: Unseen32, events: Unseen) in ZeCommandList[11] uses Usm;
            /// Appends a migration of memory to a command list.
            fn zeCommandListAppendMemoryPrefetch(list: Unseen, pointer: Accessed, size: Length) in ZeCommandList[16] uses Usm;
            /// Waits on the host for a command list; like all waits that follow, never recorded.
            fn zeCommandListHostSynchronize(list: Unseen, timeout: Unseen) in ZeCommandList[28] waits Queue;
            /// Waits on the host for a queue.
            fn zeCommandQueueSynchronize(queue: Unseen, timeout: Unseen) in ZeCommandQueue[3] waits Queue;
            /// Waits on the host for a fence.
            fn zeFenceHostSynchronize(fence: Unseen, timeout: Unseen) in ZeFence[2] waits Queue;
            /// Asks whether a fence is signalled.
            fn zeFenceQueryStatus(fence: Unseen) in ZeFence[3] waits Queue;
            /// Waits on the host for an event.
            fn zeEventHostSynchronize(event: Unseen, timeout: Unseen) in ZeEvent[3] waits Queue;
            /// Asks whether an event is signalled.
            fn zeEventQueryStatus(event: Unseen) in ZeEvent[4] waits Queue;
            /// Asks when a command ran, which succeeds once it has completed.
            fn zeEventQueryKernelTimestamp(event: Unseen, timestamp: Unseen) in ZeEvent[6] waits Queue;
            /// Creates a counter-based event; one with the IPC flag can be shared.
            fn zeEventCounterBasedCreate(context: Context, device: AnyDevice, desc: Desc, event: OutObject) in ZeEvent[11] makes Event;
            /// Destroys an event; recorded for shared events only.
            fn zeEventDestroy(event: Event) in ZeEvent[1] releases Event;
            /// Gets an IPC handle of a counter-based event, to be sent to another process. Nothing returns it.
            fn zeEventCounterBasedGetIpcHandle(event: Event, handle: OutEventHandle) in ZeEvent[12] makes EventHandle;
            /// Opens an IPC handle of another process as an event.
            fn zeEventCounterBasedOpenIpcHandle(context: Context, handle: EventHandle, event: OutObject) in ZeEvent[13] makes Event;
            /// Closes an event that was opened.
            fn zeEventCounterBasedCloseIpcHandle(event: Event) in ZeEvent[14] releases Event;
            /// Creates an event pool; one with the IPC flag can be shared.
            fn zeEventPoolCreate(context: Context, desc: Desc, count: Unseen32, devices: Unseen, pool: OutObject) in ZeEventPool[0] makes EventPool;
            /// Destroys an event pool.
            fn zeEventPoolDestroy(pool: ZePool) in ZeEventPool[1] releases EventPool;
            /// Gets an IPC handle of an event pool, to be sent to another process.
            fn zeEventPoolGetIpcHandle(pool: ZePool, handle: OutIpcHandle) in ZeEventPool[2] makes EventPoolHandle;
            /// Opens an IPC handle of another process as an event pool.
            fn zeEventPoolOpenIpcHandle(context: Context, handle: IpcHandle, pool: OutObject) in ZeEventPool[3] makes EventPool;
            /// Closes an event pool that was opened.
            fn zeEventPoolCloseIpcHandle(pool: ZePool) in ZeEventPool[4] releases EventPool;
            /// Returns an IPC handle of an event pool in the process that got it.
            fn zeEventPoolPutIpcHandle(context: Context, handle: IpcHandle) in ZeEventPool[5] ends EventPoolHandle;
            /// Gets the IPC handles of all tiles of memory; the first one is recorded.
            fn zexMemGetIpcHandles(context: Context, pointer: Pointer, count: Unseen, handles: OutIpcHandles) in ZeExtension[0] makes MemHandle;
            /// Opens the IPC handles of all tiles of memory; the first one is recorded.
            fn zexMemOpenIpcHandles(context: Context, device: AnyDevice, count: Count, handles: IpcHandles, flags: Flags, pointer: OutPointer) in ZeExtension[1] makes Mapping;
            /// `zeEventCounterBasedCreate`, by the name that it has in Intel's driver.
            fn zexCounterBasedEventCreate2(context: Context, device: AnyDevice, desc: Desc, event: OutObject) in ZeExtension[2] makes Event;
            /// `zeEventCounterBasedGetIpcHandle`, likewise.
            fn zexCounterBasedEventGetIpcHandle(event: Event, handle: OutEventHandle) in ZeExtension[3] makes EventHandle;
            /// `zeEventCounterBasedOpenIpcHandle`, likewise.
            fn zexCounterBasedEventOpenIpcHandle(context: Context, handle: EventHandle, event: OutObject) in ZeExtension[4] makes Event;
            /// `zeEventCounterBasedCloseIpcHandle`, likewise.
            fn zexCounterBasedEventCloseIpcHandle(event: Event) in ZeExtension[5] releases Event;
        }
    };
}

/// Passes the rows of Unified Runtime and of Level Zero to the macro `$sink`, in one call.
#[macro_export]
macro_rules! hooked_functions {
    ($($sink:ident)::+) => {
        ur_functions! { @rows [ze_functions] @rows [$($sink)::+] }
    };
}
