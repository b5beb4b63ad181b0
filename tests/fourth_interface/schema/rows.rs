//! One row per hooked function of HIP. The slot only numbers the rows.

/// Passes all rows to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! hip_functions {
    ($($sink:ident)::+) => {
        hip_functions! { @rows [$($sink)::+] }
    };
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            /// Allocates memory.
            fn hipMalloc(pointer: OutPointer, size: Length) in Hip[0] Allocates Usm;
            /// Frees memory.
            fn hipFree(pointer: HipPointer) in Hip[1] Frees Usm;
            /// Gets the handle of an allocation, to be sent to another process. Nothing returns it.
            fn hipIpcGetMemHandle(handle: OutHandleBytes, pointer: HipPointer) in Hip[2] Exports Usm;
            /// Opens a handle of another process: maps its memory.
            fn hipIpcOpenMemHandle(pointer: OutPointer, handle: HandleBytes, flags: Flags) in Hip[3] Opens Usm;
            /// Closes a mapping.
            fn hipIpcCloseMemHandle(pointer: HipPointer) in Hip[4] Closes Usm;
            /// Creates an event; one with the interprocess flag can be shared.
            fn hipEventCreateWithFlags(event: OutObject, flags: Flags) in Hip[5] Creates Event;
            /// Destroys an event, or closes one that was opened.
            fn hipEventDestroy(event: Event) in Hip[6] Destroys Event;
            /// Gets the handle of an event, to be sent to another process. Nothing returns it.
            fn hipIpcGetEventHandle(handle: OutHandleBytes, event: Event) in Hip[7] Exports Event;
            /// Opens a handle of another process as an event.
            fn hipIpcOpenEventHandle(event: OutObject, handle: HandleBytes) in Hip[8] Opens Event;
            /// Makes a stream signal an event.
            fn hipEventRecord(event: Event, stream: Unseen) in Hip[9] Signals Event;
            /// Waits on the host for an event.
            fn hipEventSynchronize(event: Event) in Hip[10] Waits Event;
            /// Asks whether an event is signalled.
            fn hipEventQuery(event: Event) in Hip[11] Asks Event;
            /// Waits on the host for a stream.
            fn hipStreamSynchronize(stream: Unseen) in Hip[12] Waits Queue;
            /// Waits on the host for a device.
            fn hipDeviceSynchronize() in Hip[13] Waits Queue;
            /// Copies memory, and waits for that.
            fn hipMemcpy(pointer: Accessed, source: CopiedFrom, size: Length, kind: CopyKind) in Hip[14] Performs Usm;
            /// Makes a stream copy memory.
            fn hipMemcpyAsync(pointer: Accessed, source: CopiedFrom, size: Length, kind: CopyKind, stream: Stream) in Hip[15] Enqueues Usm;
            /// Makes a stream launch a kernel, the sizes of whose arguments nothing tells.
            fn hipLaunchKernel(function: Unseen, blocks: UnseenSizes, threads: UnseenSizes, arguments: Unseen, shared: Unseen, stream: Stream) in Hip[16] Launches Usm;
            /// Ends all that belongs to the current device.
            fn hipDeviceReset() in Hip[17] Resets Context;
        }
    };
}

/// The functions.
#[macro_export]
macro_rules! hip_tables {
    (@rows [$($sink:tt)*] $($front:tt)*) => {
        $($sink)*! {
            $($front)*
            hip {
                Hip "the functions of libamdhip64.so" "hipGetProcAddress";
            }
        }
    };
}
