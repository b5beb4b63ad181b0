//! One row per hooked function of the CUDA driver.
//!
//! A row has the name of the symbol in `libcuda.so.1`, which `cuda.h` gives a function for the programs that it is included
//! in: `cuMemAlloc` is `cuMemAlloc_v2`. Its form for a thread's own default stream is a symbol too (`_ptsz`, `_ptds`), the twin
//! behind the row. The slot only numbers the rows.

/// Passes all rows to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! cu_functions {
    ($($sink:ident)::+) => {
        cu_functions! { @rows [$($sink)::+] }
    };
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            /// Creates a context.
            fn cuCtxCreate_v2(context: OutContext, flags: Unseen32, device: Ordinal) in Cuda[0] Creates Context;
            /// Creates a context, with a share of a device's multiprocessors.
            fn cuCtxCreate_v3(context: OutContext, affinities: Unseen, count: Unseen32, flags: Unseen32, device: Ordinal) in Cuda[1] Creates Context;
            /// Creates a context, with parameters.
            fn cuCtxCreate_v4(context: OutContext, parameters: Unseen, flags: Unseen32, device: Ordinal) in Cuda[2] Creates Context;
            /// Destroys a context, with all that belongs to it.
            fn cuCtxDestroy_v2(context: Context) in Cuda[3] Releases Context;
            /// Gets the primary context of a device, and adds a reference to it.
            fn cuDevicePrimaryCtxRetain(context: OutContext, device: Ordinal) in Cuda[4] Retains Context;
            /// Releases a reference to the primary context of a device, in programs of before CUDA 11.
            fn cuDevicePrimaryCtxRelease(device: Ordinal) in Cuda[5] Releases Context;
            /// Releases a reference to the primary context of a device; the last one ends it.
            fn cuDevicePrimaryCtxRelease_v2(device: Ordinal) in Cuda[6] Releases Context;
            /// Ends all that belongs to the primary context of a device, in programs of before CUDA 11.
            fn cuDevicePrimaryCtxReset(device: Ordinal) in Cuda[7] Resets Context;
            /// Ends all that belongs to the primary context of a device.
            fn cuDevicePrimaryCtxReset_v2(device: Ordinal) in Cuda[8] Resets Context;
            /// Allocates memory in the current context.
            fn cuMemAlloc_v2(pointer: OutPointer, size: Length) in Cuda[9] Allocates Usm;
            /// Allocates rows of memory.
            fn cuMemAllocPitch_v2(pointer: OutPointer, pitch: Unseen, width: Unseen, height: Unseen, element: Unseen32) in Cuda[10] Allocates Usm;
            /// Allocates managed memory, which cannot be shared.
            fn cuMemAllocManaged(pointer: OutPointer, size: Length, flags: Unseen32) in Cuda[11] Allocates Usm;
            /// Frees memory.
            fn cuMemFree_v2(pointer: DevicePointer) in Cuda[12] Frees Usm;
            /// Allocates memory of the current pool of a stream's device.
            fn cuMemAllocAsync(pointer: OutPointer, size: Length, stream: StreamHandle) in Cuda[13] Allocates Usm, cuMemAllocAsync_ptsz;
            /// Allocates memory of a pool.
            fn cuMemAllocFromPoolAsync(pointer: OutPointer, size: Length, pool: FromPool, stream: StreamHandle) in Cuda[14] Allocates Usm, cuMemAllocFromPoolAsync_ptsz;
            /// Makes a stream free memory.
            fn cuMemFreeAsync(pointer: DevicePointer, stream: StreamHandle) in Cuda[15] FreesLater Usm, cuMemFreeAsync_ptsz;
            /// Gets the handle of an allocation, to be sent to another process. Nothing returns it.
            fn cuIpcGetMemHandle(handle: OutHandleBytes, pointer: DevicePointer) in Cuda[16] Exports Usm;
            /// Opens a handle of another process: maps its memory, in programs of before CUDA 11.
            fn cuIpcOpenMemHandle(pointer: OutPointer, handle: HandleBytes, flags: Flags) in Cuda[17] Opens Usm;
            /// Opens a handle of another process: maps its memory.
            fn cuIpcOpenMemHandle_v2(pointer: OutPointer, handle: HandleBytes, flags: Flags) in Cuda[18] Opens Usm;
            /// Closes a mapping: as often as it was opened.
            fn cuIpcCloseMemHandle(pointer: DevicePointer) in Cuda[19] Closes Usm;
            /// Creates an event; one with the interprocess flag can be shared.
            fn cuEventCreate(event: OutObject, flags: Flags) in Cuda[20] Creates Event;
            /// Destroys an event, or closes one that was opened; recorded for shared events only.
            fn cuEventDestroy_v2(event: Event) in Cuda[21] Destroys Event;
            /// Gets the handle of an event, to be sent to another process. Nothing returns it.
            fn cuIpcGetEventHandle(handle: OutHandleBytes, event: Event) in Cuda[22] Exports Event;
            /// Opens a handle of another process as an event, which `cuEventDestroy` ends.
            fn cuIpcOpenEventHandle(event: OutObject, handle: HandleBytes) in Cuda[23] Opens Event;
            /// Makes a stream signal an event; like all functions of events that follow, recorded for shared events only.
            fn cuEventRecord(event: Event, stream: StreamHandle) in Cuda[24] Signals Event, cuEventRecord_ptsz;
            /// Makes a stream signal an event.
            fn cuEventRecordWithFlags(event: Event, stream: StreamHandle, flags: Unseen32) in Cuda[25] Signals Event, cuEventRecordWithFlags_ptsz;
            /// Makes a stream wait for an event.
            fn cuStreamWaitEvent(stream: StreamHandle, event: Event, flags: Unseen32) in Cuda[26] Uses Event, cuStreamWaitEvent_ptsz;
            /// Waits on the host for an event.
            fn cuEventSynchronize(event: Event) in Cuda[27] Waits Event;
            /// Asks whether an event is signalled.
            fn cuEventQuery(event: Event) in Cuda[28] Asks Event;
            /// Waits on the host for a stream; like all waits that follow, never recorded.
            fn cuStreamSynchronize(stream: StreamHandle) in Cuda[29] Waits Queue, cuStreamSynchronize_ptsz;
            /// Asks whether all commands of a stream have completed.
            fn cuStreamQuery(stream: StreamHandle) in Cuda[30] Waits Queue, cuStreamQuery_ptsz;
            /// Waits on the host for a context.
            fn cuCtxSynchronize() in Cuda[31] Waits Context;
            /// Waits on the host for a context, which it names.
            fn cuCtxSynchronize_v2(context: Unseen) in Cuda[32] Waits Context;
            /// Copies memory; like all commands that follow, recorded once the process shares memory.
            fn cuMemcpy(pointer: Accessed, source: CopiedFrom, size: Length) in Cuda[33] Performs Usm, cuMemcpy_ptds;
            /// Copies memory of the host to the device.
            fn cuMemcpyHtoD_v2(pointer: Accessed, source: Unseen, size: Length) in Cuda[34] Performs Usm, cuMemcpyHtoD_v2_ptds;
            /// Copies memory of the device to the host.
            fn cuMemcpyDtoH_v2(pointer: Unseen, source: CopiedFrom, size: Length) in Cuda[35] Performs Usm, cuMemcpyDtoH_v2_ptds;
            /// Copies memory of the device.
            fn cuMemcpyDtoD_v2(pointer: Accessed, source: CopiedFrom, size: Length) in Cuda[36] Enqueues Usm, cuMemcpyDtoD_v2_ptds;
            /// Makes a stream copy memory.
            fn cuMemcpyAsync(pointer: Accessed, source: CopiedFrom, size: Length, stream: StreamHandle) in Cuda[37] Enqueues Usm, cuMemcpyAsync_ptsz;
            /// Makes a stream copy memory of the host to the device.
            fn cuMemcpyHtoDAsync_v2(pointer: Accessed, source: Unseen, size: Length, stream: StreamHandle) in Cuda[38] Enqueues Usm, cuMemcpyHtoDAsync_v2_ptsz;
            /// Makes a stream copy memory of the device to the host.
            fn cuMemcpyDtoHAsync_v2(pointer: Unseen, source: CopiedFrom, size: Length, stream: StreamHandle) in Cuda[39] Enqueues Usm, cuMemcpyDtoHAsync_v2_ptsz;
            /// Makes a stream copy memory of the device.
            fn cuMemcpyDtoDAsync_v2(pointer: Accessed, source: CopiedFrom, size: Length, stream: StreamHandle) in Cuda[40] Enqueues Usm, cuMemcpyDtoDAsync_v2_ptsz;
            /// Copies memory between two contexts.
            fn cuMemcpyPeer(pointer: Accessed, context: Unseen, source: CopiedFrom, source_context: Unseen, size: Length) in Cuda[41] Enqueues Usm, cuMemcpyPeer_ptds;
            /// Makes a stream copy memory between two contexts.
            fn cuMemcpyPeerAsync(pointer: Accessed, context: Unseen, source: CopiedFrom, source_context: Unseen, size: Length, stream: StreamHandle) in Cuda[42] Enqueues Usm, cuMemcpyPeerAsync_ptsz;
            /// Sets the bytes of memory.
            fn cuMemsetD8_v2(pointer: Accessed, value: Unseen32, size: Length) in Cuda[43] Enqueues Usm, cuMemsetD8_v2_ptds;
            /// Makes a stream set the bytes of memory.
            fn cuMemsetD8Async(pointer: Accessed, value: Unseen32, size: Length, stream: StreamHandle) in Cuda[44] Enqueues Usm, cuMemsetD8Async_ptsz;
            /// Sets numbers of 16 bits in memory.
            fn cuMemsetD16_v2(pointer: Accessed, value: Unseen32, size: Halves) in Cuda[45] Enqueues Usm, cuMemsetD16_v2_ptds;
            /// Makes a stream set numbers of 16 bits in memory.
            fn cuMemsetD16Async(pointer: Accessed, value: Unseen32, size: Halves, stream: StreamHandle) in Cuda[46] Enqueues Usm, cuMemsetD16Async_ptsz;
            /// Sets numbers of 32 bits in memory.
            fn cuMemsetD32_v2(pointer: Accessed, value: Unseen32, size: Words) in Cuda[47] Enqueues Usm, cuMemsetD32_v2_ptds;
            /// Makes a stream set numbers of 32 bits in memory.
            fn cuMemsetD32Async(pointer: Accessed, value: Unseen32, size: Words, stream: StreamHandle) in Cuda[48] Enqueues Usm, cuMemsetD32Async_ptsz;
            /// Creates physical memory; its properties say how it can be shared.
            fn cuMemCreate(memory: OutObject, size: Length, properties: AllocationProperties, flags: Unseen) in Cuda[49] Creates PhysicalMem;
            /// Releases a reference to physical memory. It stays while it is mapped, or imported.
            fn cuMemRelease(memory: PhysicalMem) in Cuda[50] Releases PhysicalMem;
            /// Gets the physical memory that is mapped at an address, and adds a reference to it.
            fn cuMemRetainAllocationHandle(memory: OutObject, address: Unseen) in Cuda[51] Retains PhysicalMem;
            /// Maps physical memory at a reserved address.
            fn cuMemMap(pointer: DevicePointer, size: Length, offset: Offset, memory: PhysicalMem, flags: Unseen) in Cuda[52] Maps PhysicalMem;
            /// Unmaps the memory that is mapped at an address.
            fn cuMemUnmap(pointer: DevicePointer, size: Length) in Cuda[53] Unmaps PhysicalMem;
            /// Exports a descriptor of physical memory, or bytes. Nothing returns them.
            fn cuMemExportToShareableHandle(exported: OutExported, memory: PhysicalMem, property: HandleType, flags: Unseen) in Cuda[54] Exports PhysicalMem;
            /// Imports a descriptor, or bytes, of another process as physical memory, which `cuMemRelease` ends.
            fn cuMemImportFromShareableHandle(memory: OutObject, imported: Imported, property: HandleType) in Cuda[55] Opens PhysicalMem;
            /// Exports memory of a pool.
            fn cuMemPoolExportPointer(handle: OutHandleBytes, pointer: DevicePointer) in Cuda[56] Exports Usm;
            /// Imports memory of another process's pool: maps it. It is freed like other memory of a pool.
            fn cuMemPoolImportPointer(pointer: OutPointer, pool: FromPool, data: ImportedPointer) in Cuda[57] Allocates Usm;
            /// Copies rows of memory; `size` is the length of a row.
            fn cuMemcpy2D_v2(copy: Copy2d) in Cuda[58] Performs Usm, cuMemcpy2D_v2_ptds;
            /// Copies rows of memory of any pitch; `size` is the length of a row.
            fn cuMemcpy2DUnaligned_v2(copy: Copy2d) in Cuda[59] Performs Usm, cuMemcpy2DUnaligned_v2_ptds;
            /// Makes a stream copy rows of memory; `size` is the length of a row.
            fn cuMemcpy2DAsync_v2(copy: Copy2d, stream: StreamHandle) in Cuda[60] Enqueues Usm, cuMemcpy2DAsync_v2_ptsz;
            /// Makes a stream run a kernel; recorded if one of its arguments is a pointer into memory that the process shares.
            fn cuLaunchKernel(kernel: Kernel, grid_x: Unseen32, grid_y: Unseen32, grid_z: Unseen32, block_x: Unseen32, block_y: Unseen32, block_z: Unseen32, memory: Unseen32, stream: StreamHandle, parameters: KernelParams, extra: KernelExtra) in Cuda[61] Launches Usm, cuLaunchKernel_ptsz;
            /// Makes a stream run a kernel, with attributes.
            fn cuLaunchKernelEx(configuration: LaunchConfiguration, kernel: Kernel, parameters: KernelParams, extra: KernelExtra) in Cuda[62] Launches Usm, cuLaunchKernelEx_ptsz;
            /// Makes a stream run a kernel whose blocks wait for each other.
            fn cuLaunchCooperativeKernel(kernel: Kernel, grid_x: Unseen32, grid_y: Unseen32, grid_z: Unseen32, block_x: Unseen32, block_y: Unseen32, block_z: Unseen32, memory: Unseen32, stream: StreamHandle, parameters: KernelParams) in Cuda[63] Launches Usm, cuLaunchCooperativeKernel_ptsz;
            /// Copies rows of memory in planes; `size` is the length of a row.
            fn cuMemcpy3D_v2(copy: Copy3d) in Cuda[64] Performs Usm, cuMemcpy3D_v2_ptds;
            /// Makes a stream copy rows of memory in planes; `size` is the length of a row.
            fn cuMemcpy3DAsync_v2(copy: Copy3d, stream: StreamHandle) in Cuda[65] Enqueues Usm, cuMemcpy3DAsync_v2_ptsz;
            /// Copies rows of memory in planes between two contexts; `size` is the length of a row.
            fn cuMemcpy3DPeer(copy: Copy3d) in Cuda[66] Enqueues Usm, cuMemcpy3DPeer_ptds;
            /// Makes a stream copy rows of memory in planes between two contexts; `size` is the length of a row.
            fn cuMemcpy3DPeerAsync(copy: Copy3d, stream: StreamHandle) in Cuda[67] Enqueues Usm, cuMemcpy3DPeerAsync_ptsz;
            /// Sets the bytes of rows of memory; `size` is the length of a row.
            fn cuMemsetD2D8_v2(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Length, height: Unseen) in Cuda[68] Enqueues Usm, cuMemsetD2D8_v2_ptds;
            /// Makes a stream set the bytes of rows of memory; `size` is the length of a row.
            fn cuMemsetD2D8Async(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Length, height: Unseen, stream: StreamHandle) in Cuda[69] Enqueues Usm, cuMemsetD2D8Async_ptsz;
            /// Sets numbers of 16 bits in rows of memory; `size` is the length of a row.
            fn cuMemsetD2D16_v2(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Halves, height: Unseen) in Cuda[70] Enqueues Usm, cuMemsetD2D16_v2_ptds;
            /// Makes a stream set numbers of 16 bits in rows of memory; `size` is the length of a row.
            fn cuMemsetD2D16Async(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Halves, height: Unseen, stream: StreamHandle) in Cuda[71] Enqueues Usm, cuMemsetD2D16Async_ptsz;
            /// Sets numbers of 32 bits in rows of memory; `size` is the length of a row.
            fn cuMemsetD2D32_v2(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Words, height: Unseen) in Cuda[72] Enqueues Usm, cuMemsetD2D32_v2_ptds;
            /// Makes a stream set numbers of 32 bits in rows of memory; `size` is the length of a row.
            fn cuMemsetD2D32Async(pointer: Accessed, pitch: Unseen, value: Unseen32, size: Words, height: Unseen, stream: StreamHandle) in Cuda[73] Enqueues Usm, cuMemsetD2D32Async_ptsz;
            /// Makes a stream run a graph; like all that follow, recorded in a process that shares memory, without what it accesses.
            fn cuGraphLaunch(graph: Unseen, stream: StreamHandle) in Cuda[74] Submits Usm, cuGraphLaunch_ptsz;
            /// Makes a stream carry out a batch of copies, in programs of before CUDA 13.
            fn cuMemcpyBatchAsync(to: Unseen, from: Unseen, sizes: Unseen, count: Unseen, attributes: Unseen, indices: Unseen, attribute_count: Unseen, failed: Unseen, stream: StreamHandle) in Cuda[75] Submits Usm, cuMemcpyBatchAsync_ptsz;
            /// Makes a stream carry out a batch of copies.
            fn cuMemcpyBatchAsync_v2(to: Unseen, from: Unseen, sizes: Unseen, count: Unseen, attributes: Unseen, indices: Unseen, attribute_count: Unseen, stream: StreamHandle) in Cuda[76] Submits Usm, cuMemcpyBatchAsync_v2_ptsz;
            /// Makes a stream carry out a batch of copies of rows in planes, in programs of before CUDA 13.
            fn cuMemcpy3DBatchAsync(count: Unseen, copies: Unseen, failed: Unseen, flags: Unseen, stream: StreamHandle) in Cuda[77] Submits Usm, cuMemcpy3DBatchAsync_ptsz;
            /// Makes a stream carry out a batch of copies of rows in planes.
            fn cuMemcpy3DBatchAsync_v2(count: Unseen, copies: Unseen, flags: Unseen, stream: StreamHandle) in Cuda[78] Submits Usm, cuMemcpy3DBatchAsync_v2_ptsz;
            /// Makes a stream copy memory, with attributes.
            fn cuMemcpyWithAttributesAsync(pointer: Accessed, source: CopiedFrom, size: Length, attributes: Unseen, stream: StreamHandle) in Cuda[79] Enqueues Usm, cuMemcpyWithAttributesAsync_ptsz;
            /// Makes a stream copy rows of memory in planes, with attributes.
            fn cuMemcpy3DWithAttributesAsync(copy: Unseen, flags: Unseen, stream: StreamHandle) in Cuda[80] Submits Usm, cuMemcpy3DWithAttributesAsync_ptsz;
            /// Makes streams of several devices run a kernel whose blocks wait for each other.
            fn cuLaunchCooperativeKernelMultiDevice(launches: Unseen, count: Unseen32, flags: Unseen32) in Cuda[81] Submits Context;
            /// Copies memory of an array to the device.
            fn cuMemcpyAtoD_v2(pointer: Accessed, array: Unseen, offset: Unseen, size: Length) in Cuda[82] Enqueues Usm, cuMemcpyAtoD_v2_ptds;
            /// Copies memory of the device to an array.
            fn cuMemcpyDtoA_v2(array: Unseen, offset: Unseen, source: CopiedFrom, size: Length) in Cuda[83] Enqueues Usm, cuMemcpyDtoA_v2_ptds;
            /// Unloads a module, with its kernels; never recorded.
            fn cuModuleUnload(module: Unseen) in Cuda[84] Unloads Module;
            /// Unloads a library, with its kernels; never recorded.
            fn cuLibraryUnload(library: Unseen) in Cuda[85] Unloads Module;
            /// Makes a stream call a function of the host, by which a program can learn that the commands before it have completed.
            fn cuLaunchHostFunc(stream: StreamHandle, function: Unseen, data: Unseen) in Cuda[86] Reveals Queue, cuLaunchHostFunc_ptsz;
            /// Makes a stream call a function of the host, in programs of before CUDA 10.
            fn cuStreamAddCallback(stream: StreamHandle, callback: Unseen, data: Unseen, flags: Unseen32) in Cuda[87] Reveals Queue, cuStreamAddCallback_ptsz;
            /// Ends a capture. The captured commands are a graph, and are not under way.
            fn cuStreamEndCapture(stream: StreamHandle, graph: Unseen) in Cuda[88] Reveals Queue, cuStreamEndCapture_ptsz;
            /// Makes a stream wait for a number of 32 bits in memory; like all that follow, never recorded.
            fn cuStreamWaitValue32_v2(stream: StreamHandle, address: Unseen, value: Unseen32, flags: Unseen32) in Cuda[89] Orders Queue, cuStreamWaitValue32_v2_ptsz;
            /// Makes a stream wait for a number of 32 bits in memory, in programs of before CUDA 12.
            fn cuStreamWaitValue32(stream: StreamHandle, address: Unseen, value: Unseen32, flags: Unseen32) in Cuda[90] Orders Queue, cuStreamWaitValue32_ptsz;
            /// Makes a stream write a number of 32 bits to memory, for which others may wait.
            fn cuStreamWriteValue32_v2(stream: StreamHandle, address: Unseen, value: Unseen32, flags: Unseen32) in Cuda[91] Orders Queue, cuStreamWriteValue32_v2_ptsz;
            /// Makes a stream write a number of 32 bits to memory, for which others may wait, in programs of before CUDA 12.
            fn cuStreamWriteValue32(stream: StreamHandle, address: Unseen, value: Unseen32, flags: Unseen32) in Cuda[92] Orders Queue, cuStreamWriteValue32_ptsz;
            /// Makes a stream wait for a number of 64 bits in memory.
            fn cuStreamWaitValue64_v2(stream: StreamHandle, address: Unseen, value: Unseen, flags: Unseen32) in Cuda[93] Orders Queue, cuStreamWaitValue64_v2_ptsz;
            /// Makes a stream wait for a number of 64 bits in memory, in programs of before CUDA 12.
            fn cuStreamWaitValue64(stream: StreamHandle, address: Unseen, value: Unseen, flags: Unseen32) in Cuda[94] Orders Queue, cuStreamWaitValue64_ptsz;
            /// Makes a stream write a number of 64 bits to memory, for which others may wait.
            fn cuStreamWriteValue64_v2(stream: StreamHandle, address: Unseen, value: Unseen, flags: Unseen32) in Cuda[95] Orders Queue, cuStreamWriteValue64_v2_ptsz;
            /// Makes a stream write a number of 64 bits to memory, for which others may wait, in programs of before CUDA 12.
            fn cuStreamWriteValue64(stream: StreamHandle, address: Unseen, value: Unseen, flags: Unseen32) in Cuda[96] Orders Queue, cuStreamWriteValue64_ptsz;
            /// Makes a stream wait for numbers in memory and write some.
            fn cuStreamBatchMemOp_v2(stream: StreamHandle, count: Unseen32, operations: Unseen, flags: Unseen32) in Cuda[97] Orders Queue, cuStreamBatchMemOp_v2_ptsz;
            /// Makes a stream wait for numbers in memory and write some, in programs of before CUDA 12.
            fn cuStreamBatchMemOp(stream: StreamHandle, count: Unseen32, operations: Unseen, flags: Unseen32) in Cuda[98] Orders Queue, cuStreamBatchMemOp_ptsz;
            /// Makes a stream wait for semaphores of another interface.
            fn cuWaitExternalSemaphoresAsync(semaphores: Unseen, parameters: Unseen, count: Unseen32, stream: StreamHandle) in Cuda[99] Orders Queue, cuWaitExternalSemaphoresAsync_ptsz;
            /// Makes a stream signal semaphores of another interface.
            fn cuSignalExternalSemaphoresAsync(semaphores: Unseen, parameters: Unseen, count: Unseen32, stream: StreamHandle) in Cuda[100] Orders Queue, cuSignalExternalSemaphoresAsync_ptsz;
            /// Begins a capture: the commands of a stream are not executed until it ends.
            fn cuStreamBeginCapture_v2(stream: Unseen, mode: Unseen32) in Cuda[101] Orders Context, cuStreamBeginCapture_v2_ptsz;
            /// Begins a capture, in programs of before CUDA 10.1.
            fn cuStreamBeginCapture(stream: Unseen) in Cuda[102] Orders Context, cuStreamBeginCapture_ptsz;
            /// Begins a capture into a graph.
            fn cuStreamBeginCaptureToGraph(stream: Unseen, graph: Unseen, dependencies: Unseen, data: Unseen, count: Unseen, mode: Unseen32) in Cuda[103] Orders Context, cuStreamBeginCaptureToGraph_ptsz;
            /// Asks for the time between two events; an answer says that both have been reached.
            fn cuEventElapsedTime(milliseconds: Unseen, start: Unseen, end: Unseen) in Cuda[104] Reveals Context;
            /// Asks for the time between two events, in programs of CUDA 13.
            fn cuEventElapsedTime_v2(milliseconds: Unseen, start: Unseen, end: Unseen) in Cuda[105] Reveals Context;
            /// Creates a stream; like all that creates one, never recorded.
            fn cuStreamCreate(stream: OutStream, flags: StreamFlags) in Cuda[106] Creates Queue;
            /// Creates a stream with a priority.
            fn cuStreamCreateWithPriority(stream: OutStream, flags: StreamFlags, priority: Unseen32) in Cuda[107] Creates Queue;
        }
    };
}

/// The functions, which `cuGetProcAddress` returns.
#[macro_export]
#[rustfmt::skip]
macro_rules! cu_tables {
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            cuda {
                Cuda "the functions of libcuda.so.1" "cuGetProcAddress";
            }
        }
    };
}
