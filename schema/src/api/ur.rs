//! One row per Unified Runtime function we stand in front of.
//!
//! A row is all there is to a hooked function: its C export, its slot in the adapter's table, its record in the
//! trace and its place in the life of a handle are made from it by the macro that is handed in as `$sink`.
//!
//! `fn NAME(PARAMETER: ROLE, …) in TABLE[SLOT] EFFECT KIND;`
//!
//! * the parameters stand in C order and are named after the trace field that shows them; a role
//!   ([`crate::api::role`]) says how one is passed and when it can be read;
//! * `TABLE[SLOT]` is the place in `ur_<table>_dditable_t` (`ur_ddi.h` of release 2026.2), these tables having only
//!   ever grown at their end;
//! * the effect ([`crate::api::Effect`]) says what a success does to the life of an object of that kind.

/// Hands every row to the macro `$sink`, in one call.
#[macro_export]
#[rustfmt::skip]
macro_rules! ur_functions {
    ($($sink:ident)::+) => {
        $($sink)::+! {
            /// Releases a reference to an adapter; the last one tears the runtime down.
            fn urAdapterRelease(adapter: Adapter) in Adapter[1] releases Adapter;
            /// Asks a device for a property; only the questions about IPC support are recorded.
            fn urDeviceGetInfo(device: Device, property: IpcProperty, size: Unseen, value: OutBool, size_ret: Unseen) in Device[1] asks Device;
            /// Creates a context, the owner of allocations and mappings.
            fn urContextCreate(count: Unseen32, devices: Unseen, properties: Unseen, context: OutContext) in Context[0] makes Context;
            /// Takes one more reference to a context.
            fn urContextRetain(context: Context) in Context[1] retains Context;
            /// Releases a reference to a context; the last one ends what still lives in it.
            fn urContextRelease(context: Context) in Context[2] releases Context;
            /// Allocates host USM.
            fn urUSMHostAlloc(context: Context, desc: Unseen, pool: Unseen, size: Size, pointer: OutPointer) in USM[0] makes Usm;
            /// Allocates device USM.
            fn urUSMDeviceAlloc(context: Context, device: Device, desc: Unseen, pool: Unseen, size: Size, pointer: OutPointer) in USM[1] makes Usm;
            /// Allocates shared USM.
            fn urUSMSharedAlloc(context: Context, device: Device, desc: Unseen, pool: Unseen, size: Size, pointer: OutPointer) in USM[2] makes Usm;
            /// Frees USM.
            fn urUSMFree(context: Context, pointer: Pointer) in USM[3] ends Usm;
            /// Gets handle data for device USM, to be carried to another process.
            fn urIPCGetMemHandleExp(context: Context, pointer: Pointer, data: OutData, data_size: OutDataSize) in IPCExp[0] makes MemHandle;
            /// Puts handle data back in the process that got it.
            fn urIPCPutMemHandleExp(context: Context, data: Data) in IPCExp[1] ends MemHandle;
            /// Opens handle data of another process: its memory becomes a mapping here.
            fn urIPCOpenMemHandleExp(context: Context, device: Device, data: Data, data_size: DataSize, pointer: OutPointer) in IPCExp[2] makes Mapping;
            /// Closes a mapping.
            fn urIPCCloseMemHandleExp(context: Context, pointer: Pointer) in IPCExp[3] ends Mapping;
        }
    };
}
