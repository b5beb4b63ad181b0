//! One row per hooked function of the CUDA driver.
//!
//! A row has the name of the symbol in `libcuda.so.1`, which `cuda.h` gives a function for the programs that it is included
//! in: `cuMemAlloc` is `cuMemAlloc_v2`. A form for a thread's own default stream is a symbol too (`_ptsz`, `_ptds`). The slot
//! only numbers the rows.

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
            fn cuDevicePrimaryCtxRetain(context: OutContext, device: Ordinal) in Cuda[22] Retains Context;
            /// Releases a reference to the primary context of a device, in programs of before CUDA 11.
            fn cuDevicePrimaryCtxRelease(device: Ordinal) in Cuda[23] Releases Context;
            /// Releases a reference to the primary context of a device; the last one ends it.
            fn cuDevicePrimaryCtxRelease_v2(device: Ordinal) in Cuda[24] Releases Context;
            /// Ends all that belongs to the primary context of a device, in programs of before CUDA 11.
            fn cuDevicePrimaryCtxReset(device: Ordinal) in Cuda[25] Destroys Context;
            /// Ends all that belongs to the primary context of a device.
            fn cuDevicePrimaryCtxReset_v2(device: Ordinal) in Cuda[26] Destroys Context;
            /// Allocates memory in the current context.
            fn cuMemAlloc_v2(pointer: OutPointer, size: Length) in Cuda[4] Allocates Usm;
            /// Allocates rows of memory.
            fn cuMemAllocPitch_v2(pointer: OutPointer, pitch: Unseen, width: Unseen, height: Unseen, element: Unseen32) in Cuda[5] Allocates Usm;
            /// Allocates managed memory, which cannot be shared.
            fn cuMemAllocManaged(pointer: OutPointer, size: Length, flags: Unseen32) in Cuda[6] Allocates Usm;
            /// Frees memory.
            fn cuMemFree_v2(pointer: DevicePointer) in Cuda[7] Frees Usm;
            /// Allocates memory of the current pool of a stream's device.
            fn cuMemAllocAsync(pointer: OutPointer, size: Length, stream: Unseen) in Cuda[8] Allocates Usm;
            /// Allocates memory of the current pool of a stream's device.
            fn cuMemAllocAsync_ptsz(pointer: OutPointer, size: Length, stream: Unseen) in Cuda[9] Allocates Usm;
            /// Allocates memory of a pool.
            fn cuMemAllocFromPoolAsync(pointer: OutPointer, size: Length, pool: FromPool, stream: Unseen) in Cuda[10] Allocates Usm;
            /// Allocates memory of a pool.
            fn cuMemAllocFromPoolAsync_ptsz(pointer: OutPointer, size: Length, pool: FromPool, stream: Unseen) in Cuda[11] Allocates Usm;
            /// Makes a stream free memory.
            fn cuMemFreeAsync(pointer: DevicePointer, stream: Unseen) in Cuda[12] FreesLater Usm;
            /// Makes a stream free memory.
            fn cuMemFreeAsync_ptsz(pointer: DevicePointer, stream: Unseen) in Cuda[13] FreesLater Usm;
            /// Gets the handle of an allocation, to be sent to another process. Nothing returns it.
            fn cuIpcGetMemHandle(handle: OutHandleBytes, pointer: DevicePointer) in Cuda[14] Exports Usm;
            /// Opens a handle of another process: maps its memory, in programs of before CUDA 11.
            fn cuIpcOpenMemHandle(pointer: OutPointer, handle: HandleBytes, flags: Flags) in Cuda[15] Opens Usm;
            /// Opens a handle of another process: maps its memory.
            fn cuIpcOpenMemHandle_v2(pointer: OutPointer, handle: HandleBytes, flags: Flags) in Cuda[16] Opens Usm;
            /// Closes a mapping: as often as it was opened.
            fn cuIpcCloseMemHandle(pointer: DevicePointer) in Cuda[17] Closes Usm;
            /// Creates an event; one with the interprocess flag can be shared.
            fn cuEventCreate(event: OutObject, flags: Flags) in Cuda[18] Creates Event;
            /// Destroys an event, or closes one that was opened; recorded for shared events only.
            fn cuEventDestroy_v2(event: Event) in Cuda[19] Destroys Event;
            /// Gets the handle of an event, to be sent to another process. Nothing returns it.
            fn cuIpcGetEventHandle(handle: OutHandleBytes, event: Event) in Cuda[20] Exports Event;
            /// Opens a handle of another process as an event, which `cuEventDestroy` ends.
            fn cuIpcOpenEventHandle(event: OutObject, handle: HandleBytes) in Cuda[21] Opens Event;
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
