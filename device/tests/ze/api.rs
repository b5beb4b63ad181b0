//! The C functions of the device, found by name as a program finds them, and helpers for tests.

#![allow(non_snake_case, clippy::too_many_arguments, reason = "names and arguments are those of the C API")]

use std::ffi::c_char;
pub(crate) use std::ptr::{null, null_mut};
pub(crate) use std::{ffi::c_void, time::Duration};

#[path = "children.rs"]
mod children;

pub(crate) use children::*;
pub(crate) use urscope_device::layout::*;

/// Any handle.
pub(crate) type Handle = *mut c_void;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const NOT_READY: u32 = 1;
pub(crate) const OUT_OF_HOST_MEMORY: u32 = 0x7000_0002;
pub(crate) const OUT_OF_DEVICE_MEMORY: u32 = 0x7000_0003;
pub(crate) const DEVICE_LOST: u32 = 0x7000_0001;
pub(crate) const MODULE_BUILD_FAILURE: u32 = 0x7000_0004;
pub(crate) const MODULE_LINK_FAILURE: u32 = 0x7000_0005;
pub(crate) const UNINITIALIZED: u32 = 0x7800_0001;
pub(crate) const UNSUPPORTED_VERSION: u32 = 0x7800_0002;
pub(crate) const UNSUPPORTED_FEATURE: u32 = 0x7800_0003;
pub(crate) const INVALID_ARGUMENT: u32 = 0x7800_0004;
pub(crate) const INVALID_NULL_HANDLE: u32 = 0x7800_0005;
pub(crate) const INVALID_NULL_POINTER: u32 = 0x7800_0007;
pub(crate) const INVALID_SIZE: u32 = 0x7800_0008;
pub(crate) const UNSUPPORTED_SIZE: u32 = 0x7800_0009;
pub(crate) const UNSUPPORTED_ALIGNMENT: u32 = 0x7800_000a;
pub(crate) const INVALID_SYNCHRONIZATION_OBJECT: u32 = 0x7800_000b;
pub(crate) const INVALID_ENUMERATION: u32 = 0x7800_000c;
pub(crate) const UNSUPPORTED_ENUMERATION: u32 = 0x7800_000d;
pub(crate) const INVALID_NATIVE_BINARY: u32 = 0x7800_000f;
pub(crate) const INVALID_GLOBAL_NAME: u32 = 0x7800_0010;
pub(crate) const INVALID_KERNEL_NAME: u32 = 0x7800_0011;
pub(crate) const INVALID_FUNCTION_NAME: u32 = 0x7800_0012;
pub(crate) const INVALID_GROUP_SIZE_DIMENSION: u32 = 0x7800_0013;
pub(crate) const INVALID_KERNEL_ARGUMENT_INDEX: u32 = 0x7800_0015;
pub(crate) const INVALID_KERNEL_ARGUMENT_SIZE: u32 = 0x7800_0016;
pub(crate) const INVALID_MODULE_UNLINKED: u32 = 0x7800_0018;
pub(crate) const INVALID_COMMAND_LIST_TYPE: u32 = 0x7800_0019;
pub(crate) const INVALID_KERNEL_HANDLE: u32 = 0x7800_001c;
pub(crate) const QUERY_TRUE: u32 = 0x7800_0022;
pub(crate) const QUERY_FALSE: u32 = 0x7800_0023;
pub(crate) const INVALID_GRAPH: u32 = 0x7800_0024;
pub(crate) const GRAPH_CAPTURE_UNSUPPORTED: u32 = 0x7800_0025;
pub(crate) const GRAPH_CAPTURE_MERGE_ATTEMPT: u32 = 0x7800_0027;
pub(crate) const COMMAND_LIST_NOT_CAPTURING: u32 = 0x7800_0028;
pub(crate) const GRAPH_UNJOINED_FORKS: u32 = 0x7800_0029;
pub(crate) const GRAPH_INTERNAL_EVENT: u32 = 0x7800_002a;
pub(crate) const UNKNOWN: u32 = 0x7fff_fffe;

/// A callback of a tracer: pointers to the arguments, the result, the tracer's data, data of this call.
pub(crate) type TracerCallback = unsafe extern "C" fn(*const *mut u64, u64, usize, *mut usize);

/// No timeout.
pub(crate) const FOREVER: u64 = u64::MAX;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(pub(crate) fn $name($($argument: $type),*) -> functions!(@result $($result)?) {
            let address = address(stringify!($name));
            // SAFETY: the signature is that of ze_api.h, which the device implements.
            let function = unsafe {
                std::mem::transmute::<*const (), extern "C" fn($($type),*) -> functions!(@result $($result)?)>(address)
            };
            function($($argument),*)
        })*
    };
    (@result) => { u32 };
    (@result $result:ty) => { $result };
}

/// The address of a function of the API, of the loader, or of those that only the driver offers.
fn address(name: &str) -> *const () {
    let extension = || urscope_device::ddi::EXTENSIONS.iter().find(|function| function.name == name);
    urscope_device::ddi::lookup(name).or_else(|| extension().map(|function| function.address)).expect(name)
}

/// `ze_host_function_callback_t`.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

functions! {
    zelTracerCreate(desc: *const TracerDesc, tracer: *mut Handle);
    zelTracerDestroy(tracer: Handle);
    zelTracerSetPrologues(tracer: Handle, callbacks: *const Option<TracerCallback>);
    zelTracerSetEpilogues(tracer: Handle, callbacks: *const Option<TracerCallback>);
    zelTracerSetEnabled(tracer: Handle, enable: u8);
    zelTracerResetAllCallbacks(tracer: Handle);
    zelEnableTracingLayer();
    zelDisableTracingLayer();
    zelGetTracingLayerState(enabled: *mut bool);
    zeInit(flags: u32);
    zeInitDrivers(count: *mut u32, drivers: *mut Handle, desc: *const InitDriverTypeDesc);
    zeDriverGet(count: *mut u32, drivers: *mut Handle);
    zeDriverGetApiVersion(driver: Handle, version: *mut u32);
    zeDriverGetProperties(driver: Handle, properties: *mut DriverProperties);
    zeDriverGetIpcProperties(driver: Handle, properties: *mut DriverIpcProperties);
    zeDriverGetExtensionProperties(driver: Handle, count: *mut u32, properties: *mut DriverExtensionProperties);
    zeDriverGetExtensionFunctionAddress(driver: Handle, name: *const c_char, address: *mut *const c_void);
    zeDriverGetDefaultContext(driver: Handle) -> Handle;
    zerGetDefaultContext() -> Handle;
    zerTranslateDeviceHandleToIdentifier(device: Handle) -> u32;
    zerTranslateIdentifierToDeviceHandle(identifier: u32) -> Handle;
    zeDeviceGet(driver: Handle, count: *mut u32, devices: *mut Handle);
    zeDeviceGetSubDevices(device: Handle, count: *mut u32, devices: *mut Handle);
    zeDeviceGetRootDevice(device: Handle, root: *mut Handle);
    zeDeviceGetProperties(device: Handle, properties: *mut DeviceProperties);
    zeDeviceGetComputeProperties(device: Handle, properties: *mut DeviceComputeProperties);
    zeDeviceGetModuleProperties(device: Handle, properties: *mut DeviceModuleProperties);
    zeDeviceGetCommandQueueGroupProperties(device: Handle, count: *mut u32, properties: *mut CommandQueueGroupProperties);
    zeDeviceGetMemoryProperties(device: Handle, count: *mut u32, properties: *mut DeviceMemoryProperties);
    zeDeviceGetMemoryAccessProperties(device: Handle, properties: *mut DeviceMemoryAccessProperties);
    zeDeviceGetCacheProperties(device: Handle, count: *mut u32, properties: *mut DeviceCacheProperties);
    zeDeviceGetImageProperties(device: Handle, properties: *mut DeviceImageProperties);
    zeDeviceGetExternalMemoryProperties(device: Handle, properties: *mut DeviceExternalMemoryProperties);
    zeDeviceGetP2PProperties(device: Handle, peer: Handle, properties: *mut DeviceP2pProperties);
    zeDeviceCanAccessPeer(device: Handle, peer: Handle, value: *mut u8);
    zeDeviceGetStatus(device: Handle);
    zeDeviceGetFabricVertexExp(device: Handle, vertex: *mut Handle);
    zeFabricVertexGetExp(driver: Handle, count: *mut u32, vertices: *mut Handle);
    zeFabricVertexGetDeviceExp(vertex: Handle, device: *mut Handle);
    zeFabricVertexGetPropertiesExp(vertex: Handle, properties: *mut FabricVertexProperties);
    zeFabricVertexGetSubVerticesExp(vertex: Handle, count: *mut u32, vertices: *mut Handle);
    zeFabricEdgeGetExp(one: Handle, other: Handle, count: *mut u32, edges: *mut Handle);
    zeDeviceGetGlobalTimestamps(device: Handle, host: *mut u64, own: *mut u64);
    zeDeviceSynchronize(device: Handle);
    zeDeviceGetCounterBasedEventMaxValue(device: Handle, value: *mut u64);
    zeDeviceGetAggregatedCopyOffloadIncrementValue(device: Handle, value: *mut u32);
    zeContextCreate(driver: Handle, desc: *const ContextDesc, context: *mut Handle);
    zeContextDestroy(context: Handle);
    zeContextGetStatus(context: Handle);
    zeMemAllocHost(context: Handle, desc: *const HostMemAllocDesc, size: usize, alignment: usize, out: *mut *mut c_void);
    zeMemAllocDevice(context: Handle, desc: *const DeviceMemAllocDesc, size: usize, alignment: usize, device: Handle, out: *mut *mut c_void);
    zeMemAllocShared(context: Handle, desc: *const DeviceMemAllocDesc, host: *const HostMemAllocDesc, size: usize, alignment: usize, device: Handle, out: *mut *mut c_void);
    zeMemFree(context: Handle, pointer: *mut c_void);
    zeMemFreeExt(context: Handle, desc: *const MemoryFreeExtDesc, pointer: *mut c_void);
    zeMemSetAtomicAccessAttributeExp(context: Handle, device: Handle, pointer: *const c_void, size: usize, attributes: u32);
    zeMemGetAtomicAccessAttributeExp(context: Handle, device: Handle, pointer: *const c_void, size: usize, attributes: *mut u32);
    zeMemGetAllocProperties(context: Handle, pointer: *const c_void, properties: *mut MemoryAllocationProperties, device: *mut Handle);
    zeMemGetAddressRange(context: Handle, pointer: *const c_void, base: *mut *mut c_void, size: *mut usize);
    zeMemGetIpcHandle(context: Handle, pointer: *const c_void, handle: *mut IpcHandle);
    zeMemGetIpcHandleWithProperties(context: Handle, pointer: *const c_void, wishes: *const c_void, handle: *mut IpcHandle);
    zeMemGetFileDescriptorFromIpcHandleExp(context: Handle, handle: IpcHandle, descriptor: *mut u64);
    zeMemGetIpcHandleFromFileDescriptorExp(context: Handle, descriptor: u64, handle: *mut IpcHandle);
    zeMemPutIpcHandle(context: Handle, handle: IpcHandle);
    zeMemOpenIpcHandle(context: Handle, device: Handle, handle: IpcHandle, flags: u32, out: *mut *mut c_void);
    zeMemCloseIpcHandle(context: Handle, pointer: *const c_void);
    zeVirtualMemReserve(context: Handle, start: *const c_void, size: usize, out: *mut *mut c_void);
    zeVirtualMemFree(context: Handle, pointer: *const c_void, size: usize);
    zeVirtualMemQueryPageSize(context: Handle, device: Handle, size: usize, page_size: *mut usize);
    zeVirtualMemMap(context: Handle, pointer: *const c_void, size: usize, physical: Handle, offset: usize, access: u32);
    zeVirtualMemUnmap(context: Handle, pointer: *const c_void, size: usize);
    zeVirtualMemSetAccessAttribute(context: Handle, pointer: *const c_void, size: usize, access: u32);
    zeVirtualMemGetAccessAttribute(context: Handle, pointer: *const c_void, size: usize, access: *mut u32, out_size: *mut usize);
    zePhysicalMemCreate(context: Handle, device: Handle, desc: *const PhysicalMemDesc, physical: *mut Handle);
    zePhysicalMemDestroy(context: Handle, physical: Handle);
    zePhysicalMemGetProperties(context: Handle, physical: Handle, properties: *mut PhysicalMemProperties);
    zeCommandQueueCreate(context: Handle, device: Handle, desc: *const CommandQueueDesc, queue: *mut Handle);
    zeCommandQueueDestroy(queue: Handle);
    zeCommandQueueExecuteCommandLists(queue: Handle, count: u32, lists: *const Handle, fence: Handle);
    zeCommandQueueSynchronize(queue: Handle, timeout: u64);
    zeCommandListCreate(context: Handle, device: Handle, desc: *const CommandListDesc, list: *mut Handle);
    zeCommandListCreateImmediate(context: Handle, device: Handle, desc: *const CommandQueueDesc, list: *mut Handle);
    zeCommandListDestroy(list: Handle);
    zeCommandQueueGetFlags(queue: Handle, value: *mut u32);
    zeCommandQueueGetMode(queue: Handle, value: *mut u32);
    zeCommandQueueGetPriority(queue: Handle, value: *mut u32);
    zeCommandListGetFlags(list: Handle, value: *mut u32);
    zeCommandListImmediateGetFlags(list: Handle, value: *mut u32);
    zeCommandListImmediateGetMode(list: Handle, value: *mut u32);
    zeCommandListImmediateGetPriority(list: Handle, value: *mut u32);
    zeCommandListImmediateGetIndex(list: Handle, value: *mut u32);
    zeCommandListClose(list: Handle);
    zeCommandListGetDeviceHandle(list: Handle, device: *mut Handle);
    zeCommandListReset(list: Handle);
    zeCommandListHostSynchronize(list: Handle, timeout: u64);
    zeCommandListGetNextCommandIdExp(list: Handle, desc: *const MutableCommandIdDesc, id: *mut u64);
    zeCommandListGetNextCommandIdWithKernelsExp(list: Handle, desc: *const MutableCommandIdDesc, count: u32, kernels: *const Handle, id: *mut u64);
    zeCommandListUpdateMutableCommandsExp(list: Handle, desc: *const MutableCommandsDesc);
    zeCommandListUpdateMutableCommandSignalEventExp(list: Handle, id: u64, signal: Handle);
    zeCommandListUpdateMutableCommandWaitEventsExp(list: Handle, id: u64, waits: u32, events: *const Handle);
    zeCommandListUpdateMutableCommandKernelsExp(list: Handle, count: u32, ids: *const u64, kernels: *const Handle);
    zeCommandListIsMutableExp(list: Handle, mutable: *mut u8);
    zeCommandListImmediateAppendCommandListsExp(list: Handle, count: u32, lists: *const Handle, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendMemoryCopy(list: Handle, to: *mut c_void, from: *const c_void, size: usize, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendMemoryFill(list: Handle, to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendMemoryCopyRegion(list: Handle, to: *mut c_void, to_region: *const CopyRegion, to_pitch: u32, to_slice: u32, from: *const c_void, from_region: *const CopyRegion, from_pitch: u32, from_slice: u32, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendMemoryCopyWithParameters(list: Handle, to: *mut c_void, from: *const c_void, size: usize, extensions: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendMemoryFillWithParameters(list: Handle, to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, extensions: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListImmediateAppendCommandListsWithParameters(list: Handle, count: u32, lists: *const Handle, extensions: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendHostFunction(list: Handle, function: Option<HostFunction>, data: *mut c_void, extensions: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendBarrier(list: Handle, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendSignalEvent(list: Handle, event: Handle);
    zeCommandListAppendWaitOnEvents(list: Handle, count: u32, events: *const Handle);
    zeCommandListAppendEventReset(list: Handle, event: Handle);
    zeCommandListAppendWriteGlobalTimestamp(list: Handle, to: *mut u64, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendQueryKernelTimestamps(list: Handle, count: u32, queried: *const Handle, to: *mut c_void, offsets: *const usize, signal: Handle, waits: u32, events: *const Handle);
    zeGraphCreateExt(context: Handle, extensions: *const c_void, graph: *mut Handle);
    zeGraphDestroyExt(graph: Handle);
    zeGraphIsEmptyExt(graph: Handle);
    zeGraphInstantiateExt(graph: Handle, extensions: *const c_void, executable: *mut Handle);
    zeGraphGetPrimaryCommandListExt(graph: Handle, list: *mut Handle);
    zeGraphSetDestructionCallbackExt(graph: Handle, function: Option<HostFunction>, data: *mut c_void, extensions: *const c_void);
    zeGraphGetIdExt(graph: Handle, id: *mut u64);
    zeExecutableGraphDestroyExt(executable: Handle);
    zeExecutableGraphGetSourceGraphExt(executable: Handle, graph: *mut Handle);
    zeCommandListBeginGraphCaptureExt(list: Handle, extensions: *const c_void);
    zeCommandListBeginCaptureIntoGraphExt(list: Handle, graph: Handle, extensions: *const c_void);
    zeCommandListEndGraphCaptureExt(list: Handle, extensions: *const c_void, graph: *mut Handle);
    zeCommandListIsGraphCaptureEnabledExt(list: Handle);
    zeCommandListGetGraphExt(list: Handle, graph: *mut Handle);
    zeCommandListAppendGraphExt(list: Handle, executable: Handle, extensions: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeEventPoolCreate(context: Handle, desc: *const EventPoolDesc, count: u32, devices: *const Handle, pool: *mut Handle);
    zeEventPoolDestroy(pool: Handle);
    zeEventPoolGetFlags(pool: Handle, flags: *mut u32);
    zeEventPoolGetIpcHandle(pool: Handle, handle: *mut IpcHandle);
    zeEventPoolPutIpcHandle(context: Handle, handle: IpcHandle);
    zeEventPoolOpenIpcHandle(context: Handle, handle: IpcHandle, pool: *mut Handle);
    zeEventPoolCloseIpcHandle(pool: Handle);
    zeEventCounterBasedGetIpcHandle(event: Handle, handle: *mut IpcHandle);
    zeEventCounterBasedOpenIpcHandle(context: Handle, handle: IpcHandle, event: *mut Handle);
    zeEventCounterBasedCloseIpcHandle(event: Handle);
    zeEventCounterBasedGetDeviceAddress(event: Handle, value: *mut u64, address: *mut u64);
    zeEventGetCounterBasedFlags(event: Handle, flags: *mut u32);
    zeEventCreate(pool: Handle, desc: *const EventDesc, event: *mut Handle);
    zeEventCounterBasedCreate(context: Handle, device: Handle, desc: *const EventCounterBasedDesc, event: *mut Handle);
    zeEventDestroy(event: Handle);
    zeEventHostSignal(event: Handle);
    zeEventHostReset(event: Handle);
    zeEventHostSynchronize(event: Handle, timeout: u64);
    zeEventQueryStatus(event: Handle);
    zeEventQueryKernelTimestamp(event: Handle, result: *mut KernelTimestampResult);
    zeEventQueryKernelTimestampsExt(event: Handle, device: Handle, count: *mut u32, results: *const KernelTimestampsResults);
    zeFenceCreate(queue: Handle, desc: *const FenceDesc, fence: *mut Handle);
    zeFenceDestroy(fence: Handle);
    zeFenceHostSynchronize(fence: Handle, timeout: u64);
    zeFenceQueryStatus(fence: Handle);
    zeFenceReset(fence: Handle);
    zeModuleCreate(context: Handle, device: Handle, desc: *const ModuleDesc, module: *mut Handle, log: *mut Handle);
    zeModuleDestroy(module: Handle);
    zeModuleDynamicLink(count: u32, modules: *const Handle, log: *mut Handle);
    zeModuleGetNativeBinary(module: Handle, size: *mut usize, binary: *mut u8);
    zeModuleGetGlobalPointer(module: Handle, name: *const c_char, size: *mut usize, pointer: *mut *mut c_void);
    zeModuleGetKernelNames(module: Handle, count: *mut u32, names: *mut *const c_char);
    zeModuleGetProperties(module: Handle, properties: *mut ModuleProperties);
    zeModuleGetFunctionPointer(module: Handle, name: *const c_char, pointer: *mut *mut c_void);
    zeModuleBuildLogDestroy(log: Handle);
    zeModuleBuildLogGetString(log: Handle, size: *mut usize, text: *mut c_char);
    zeKernelCreate(module: Handle, desc: *const KernelDesc, kernel: *mut Handle);
    zeKernelDestroy(kernel: Handle);
    zeKernelSetGroupSize(kernel: Handle, x: u32, y: u32, z: u32);
    zeKernelSuggestGroupSize(kernel: Handle, x: u32, y: u32, z: u32, group_x: *mut u32, group_y: *mut u32, group_z: *mut u32);
    zeKernelSuggestMaxCooperativeGroupCount(kernel: Handle, count: *mut u32);
    zeKernelSetArgumentValue(kernel: Handle, index: u32, size: usize, value: *const c_void);
    zeKernelSetIndirectAccess(kernel: Handle, flags: u32);
    zeKernelGetIndirectAccess(kernel: Handle, flags: *mut u32);
    zeKernelGetSourceAttributes(kernel: Handle, size: *mut u32, text: *mut *mut c_char);
    zeKernelSetGlobalOffsetExp(kernel: Handle, x: u32, y: u32, z: u32);
    zeKernelGetProperties(kernel: Handle, properties: *mut KernelProperties);
    zeKernelGetName(kernel: Handle, size: *mut usize, name: *mut c_char);
    zeCommandListAppendLaunchKernel(list: Handle, kernel: Handle, groups: *const Extent, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendLaunchCooperativeKernel(list: Handle, kernel: Handle, groups: *const Extent, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendLaunchKernelIndirect(list: Handle, kernel: Handle, groups: *const Extent, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendLaunchMultipleKernelsIndirect(list: Handle, count: u32, kernels: *const Handle, actual: *const u32, groups: *const Extent, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendLaunchKernelWithParameters(list: Handle, kernel: Handle, groups: *const Extent, next: *const c_void, signal: Handle, waits: u32, events: *const Handle);
    zeCommandListAppendLaunchKernelWithArguments(list: Handle, kernel: Handle, groups: Extent, group: Extent, arguments: *const *const c_void, next: *const c_void, signal: Handle, waits: u32, events: *const Handle);
}

/// All zeroes: a valid value of every layout structure.
pub(crate) fn zeroed<T>() -> T {
    // SAFETY: only used for the layout structures, which are integers, arrays of them and pointers.
    unsafe { std::mem::zeroed() }
}

/// Requires success.
#[track_caller]
pub(crate) fn ok(result: u32) {
    assert_eq!(result, SUCCESS, "{result:#x}");
}

/// The handle that a call returns through its last argument. Requires success.
#[track_caller]
pub(crate) fn make(call: impl FnOnce(*mut Handle) -> u32) -> Handle {
    let mut handle = null_mut();
    ok(call(&raw mut handle));
    assert!(!handle.is_null());
    handle
}

/// The first driver.
pub(crate) fn driver() -> Handle {
    ok(zeInit(0));
    let mut count = 1;
    make(|driver| zeDriverGet(&raw mut count, driver))
}

/// All devices.
pub(crate) fn devices() -> Vec<Handle> {
    let driver = driver();
    all(|count, out| zeDeviceGet(driver, count, out))
}

/// A context and the first device, with functions that create objects on them.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) context: Handle,
    pub(crate) device: Handle,
}

// SAFETY: handles of contexts and devices may be used by all threads (ze_api.h).
unsafe impl Send for Setup {}
// SAFETY: the same.
unsafe impl Sync for Setup {}

impl Setup {
    pub(crate) fn new() -> Self {
        let driver = driver();
        Self { context: make(|context| zeContextCreate(driver, &zeroed(), context)), device: devices()[0] }
    }

    /// With an immediate list of this mode: 1 synchronous, 2 asynchronous.
    pub(crate) fn with_list(mode: u32) -> (Self, Handle) {
        let setup = Self::new();
        (setup, setup.immediate_list(mode))
    }

    pub(crate) fn device_memory(self, size: usize) -> *mut c_void {
        make(|out| zeMemAllocDevice(self.context, &zeroed(), size, 0, self.device, out))
    }

    pub(crate) fn physical(self, size: usize) -> Handle {
        make(|out| zePhysicalMemCreate(self.context, self.device, &PhysicalMemDesc { size, ..zeroed() }, out))
    }

    pub(crate) fn exportable(self, size: usize) -> Handle {
        let export = ExternalMemoryExportDesc { s_type: ExternalMemoryExportDesc::S_TYPE, flags: 1, ..zeroed() };
        let desc = PhysicalMemDesc { p_next: (&raw const export).cast_mut().cast(), size, ..zeroed() };
        make(|out| zePhysicalMemCreate(self.context, self.device, &raw const desc, out))
    }

    pub(crate) fn reserve(self, size: usize) -> *mut c_void {
        make(|out| zeVirtualMemReserve(self.context, null(), size, out))
    }

    pub(crate) fn free(self, pointer: *mut c_void) {
        ok(zeMemFree(self.context, pointer));
    }

    pub(crate) fn immediate_list(self, mode: u32) -> Handle {
        self.immediate_list_of(CommandQueueDesc { mode, ..zeroed() })
    }

    pub(crate) fn immediate_list_of(self, desc: CommandQueueDesc) -> Handle {
        make(|list| zeCommandListCreateImmediate(self.context, self.device, &raw const desc, list))
    }

    pub(crate) fn regular_list(self) -> Handle {
        self.regular_list_of(zeroed())
    }

    pub(crate) fn regular_list_of(self, desc: CommandListDesc) -> Handle {
        make(|list| zeCommandListCreate(self.context, self.device, &raw const desc, list))
    }

    pub(crate) fn queue(self, mode: u32) -> Handle {
        self.queue_of(CommandQueueDesc { mode, ..zeroed() })
    }

    pub(crate) fn queue_of(self, desc: CommandQueueDesc) -> Handle {
        make(|queue| zeCommandQueueCreate(self.context, self.device, &raw const desc, queue))
    }

    pub(crate) fn event_pool(self, count: u32) -> Handle {
        let desc = EventPoolDesc { flags: 0b101, count, ..zeroed() };
        make(|pool| zeEventPoolCreate(self.context, &raw const desc, 0, null(), pool))
    }

    pub(crate) fn events<const N: usize>(self) -> [Handle; N] {
        let pool = self.event_pool(N as u32);
        std::array::from_fn(|index| {
            make(|event| zeEventCreate(pool, &EventDesc { index: index as u32, ..zeroed() }, event))
        })
    }

    pub(crate) fn counter_event(self) -> Handle {
        self.counter_event_with(0b111)
    }

    pub(crate) fn shared_event(self) -> Handle {
        self.counter_event_with(0b1111)
    }

    pub(crate) fn counter_event_with(self, flags: u32) -> Handle {
        let desc = EventCounterBasedDesc { flags, ..zeroed() };
        make(|event| zeEventCounterBasedCreate(self.context, self.device, &raw const desc, event))
    }
}

/// Sets how many descriptors this process may have, which must not run other tests.
pub(crate) fn limit_descriptors(count: u64) {
    let limit = libc::rlimit { rlim_cur: count, rlim_max: count };
    // SAFETY: setrlimit reads the structure that it is given.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

/// Makes small allocations of this process share files from now on: it has few descriptors, and half of them are used.
pub(crate) fn share_files(setup: Setup) {
    limit_descriptors(64);
    for _ in 0..32 {
        setup.device_memory(1);
    }
}

/// The beginning and the size of the memory around an address.
#[track_caller]
pub(crate) fn range(setup: Setup, inside: *const c_void) -> (*mut c_void, usize) {
    let mut base = null_mut();
    let mut size = 0;
    ok(zeMemGetAddressRange(setup.context, inside, &raw mut base, &raw mut size));
    (base, size)
}

/// The bytes at a pointer.
pub(crate) fn bytes<'a>(pointer: *const c_void, size: usize) -> &'a mut [u8] {
    // SAFETY: the tests pass live allocations of at least this size, and access them from one thread at a time.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast_mut().cast(), size) }
}

/// Appends a command that waits for no event, and signals at most one.
macro_rules! append {
    ($function:ident($($argument:expr),*)) => { append!($function($($argument),*), null_mut()) };
    ($function:ident($($argument:expr),*), $signal:expr) => { $function($($argument,)* $signal, 0, null()) };
}
#[allow(unused_imports, reason = "not every program uses it")]
pub(crate) use append;

/// Appends a copy without events.
pub(crate) fn copy(list: Handle, to: *mut c_void, from: *const c_void, size: usize) {
    ok(append!(zeCommandListAppendMemoryCopy(list, to, from, size)));
}

/// All that a call returns, which is asked for their number first.
#[track_caller]
pub(crate) fn all<T>(call: impl Fn(*mut u32, *mut T) -> u32) -> Vec<T> {
    let mut count = 0;
    ok(call(&raw mut count, null_mut()));
    let mut found: Vec<T> = (0..count).map(|_| zeroed()).collect();
    ok(call(&raw mut count, found.as_mut_ptr()));
    found
}

/// The value that a call returns through its last argument. Requires success.
#[track_caller]
pub(crate) fn value<T>(call: impl FnOnce(*mut T) -> u32) -> T {
    let mut value = zeroed();
    ok(call(&raw mut value));
    value
}

/// The number of open descriptors of this process.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The number of mappings of device memory in this process.
pub(crate) fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:ze_soft").count()
}

/// The time of the device, in nanoseconds. All processes share the clock.
pub(crate) fn now(setup: Setup) -> u64 {
    let mut host = 0;
    let mut own = 0;
    ok(zeDeviceGetGlobalTimestamps(setup.device, &raw mut host, &raw mut own));
    own
}

/// When the work that signalled an event started, in nanoseconds of the device clock.
pub(crate) fn started(event: Handle) -> u64 {
    let mut result: KernelTimestampResult = zeroed();
    ok(zeEventQueryKernelTimestamp(event, &raw mut result));
    result.global.kernel_start
}

/// A duration in nanoseconds.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
