//! The calls of a scenario by the functions of other interfaces than Unified Runtime.

use urscope_schema::api::cuda::constants::EVENT_INTERPROCESS;
use urscope_schema::api::unified_runtime::constants::UR_EXP_EVENT_FLAG_IPC_EXP;
use urscope_schema::api::{CUDA, Effect, Function, Interface};
use urscope_schema::call::Values;
use urscope_schema::handle::{Kind, descriptor_data};

/// The number of the descriptor with the address of a name.
pub(super) const fn descriptor_of(address: u64) -> u32 {
    (address >> 24) as u32
}

/// The same call by the function of another interface. A handle has no size there; in CUDA it is known by its bytes, and what
/// is made belongs to the current context.
pub(super) fn by_interface(
    interface: Option<&Interface>,
    (function, enter, exit): (Function, Values, Values),
) -> (Function, Values, Values) {
    use Function as F;
    let is_cuda = match interface {
        None => return (function, enter, exit),
        Some(interface) => interface == &CUDA,
    };
    let (of_level_zero, of_cuda) = match function {
        F::urUSMDeviceAlloc => (F::zeMemAllocDevice, F::cuMemAlloc_v2),
        F::urUSMSharedAlloc => (function, F::cuMemAllocManaged),
        F::urUSMFree => (F::zeMemFree, F::cuMemFree_v2),
        F::urIPCGetMemHandleExp => (F::zeMemGetIpcHandle, F::cuIpcGetMemHandle),
        F::urIPCPutMemHandleExp => (F::zeMemPutIpcHandle, function),
        F::urIPCOpenMemHandleExp => (F::zeMemOpenIpcHandle, F::cuIpcOpenMemHandle_v2),
        F::urIPCCloseMemHandleExp => (F::zeMemCloseIpcHandle, F::cuIpcCloseMemHandle),
        F::urEnqueueUSMMemcpy => (F::zeCommandListAppendMemoryCopy, function),
        F::urContextCreate => (function, F::cuCtxCreate_v4),
        F::urContextRelease => (function, F::cuCtxDestroy_v2),
        F::urEventCreateExp => (function, F::cuEventCreate),
        F::urEventRelease => (function, F::cuEventDestroy_v2),
        F::urEventWait => (function, F::cuEventSynchronize),
        F::urIPCGetEventHandleExp => (function, F::cuIpcGetEventHandle),
        F::urIPCOpenEventHandleExp => (function, F::cuIpcOpenEventHandle),
        F::urPhysicalMemCreate => (function, F::cuMemCreate),
        F::urPhysicalMemRetain => (function, F::cuMemRetainAllocationHandle),
        F::urPhysicalMemRelease => (function, F::cuMemRelease),
        F::urIPCGetPhysMemHandleExp => (function, F::cuMemExportToShareableHandle),
        F::urVirtualMemMap => (function, F::cuMemMap),
        F::urVirtualMemUnmap => (function, F::cuMemUnmap),
        other => (other, other),
    };
    let [enter, exit] = [enter, exit].map(|values| Values { data_size: None, ..values });
    if !is_cuda {
        return (of_level_zero, enter, exit);
    }
    let is_shareable = enter.flags.is_some_and(|flags| flags & u64::from(UR_EXP_EVENT_FLAG_IPC_EXP) != 0);
    let flags = enter.flags.map(|_| if is_shareable { EVENT_INTERPROCESS } else { 0 });
    let has_context = matches!(
        of_cuda.effect(),
        Effect::Allocates(_) | Effect::Opens(_) | Effect::Creates(_) | Effect::Releases(Kind::Context)
    );
    let [enter, exit] = [enter, exit].map(|values| {
        let data = match of_cuda.effect() {
            Effect::Exports(Kind::PhysicalMem) => values.data.map(|data| descriptor_data(descriptor_of(data))),
            _ => values.data.and(values.fingerprint),
        };
        Values {
            context: values.context.filter(|_| has_context),
            device: None,
            count: None,
            value: None,
            data,
            ..values
        }
    });
    match of_cuda {
        // It is asked for by an address.
        F::cuMemRetainAllocationHandle => (of_cuda, Values::NONE, enter),
        _ => (of_cuda, Values { flags, ..enter }, exit),
    }
}
