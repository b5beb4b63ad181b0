//! urscope's own backend: the functions that share memory between processes, implemented on Level Zero.
//!
//! It uses only the adapter's public functions ([`native`]) and the driver of the process ([`driver`]), so it works
//! with any runtime, also one whose adapter lacks these functions. Handle data have a checksum ([`handle_data`]), and
//! descriptors are fetched as libumf does ([`fetch`]). [`issued_handles`] has the handle data that have not been put.
//!
//! Wrong, foreign, altered and stale data get the documented error and change nothing. Only out-parameters are
//! written to the caller's memory.

use urscope_schema::api::role::{
    Context, Count, Data, DataSize, Desc, Device, Devices, Event, EventProperty, Events, Flags, InOutEvent,
    IpcProperty, Offset, OpenedData, OutBool, OutContext, OutData, OutDataSize, OutEventValue, OutObject, OutPointer,
    OutValue, OutValueSize, PhysicalMem, Pointer, Property, Queue, Size, Unseen, ValueSize, WaitList, WaitListLength,
};
use urscope_schema::api::{Function, ResultCode};

use self::{driver::ZeHandle, native::NativeFunctions, result::answer};
use super::adapter::{self, registry};
use super::{Backend, Family};
use crate::raw::args::{Arg, caller::Query};

mod driver;
mod event;
mod fetch;
pub mod handle_data;
mod issued_handles;
mod memory;
mod native;
mod opening;
mod physical;
mod result;
mod signal;
mod support;
pub mod without_adapter;

/// Forgets the parent's objects.
pub fn after_fork_in_child() {
    fetch::after_fork_in_child();
    memory::after_fork_in_child();
    physical::after_fork_in_child();
    event::after_fork_in_child();
    signal::after_fork_in_child();
    support::after_fork_in_child();
    without_adapter::after_fork_in_child();
}

/// The backend, for the calls to one adapter.
#[derive(Clone, Copy, Debug)]
pub struct LevelZero {
    via: usize,
}

impl LevelZero {
    /// For adapter `via`.
    pub const fn new(via: usize) -> Self {
        Self { via }
    }

    fn native(self) -> Result<&'static NativeFunctions, ResultCode> {
        NativeFunctions::for_adapter(self.via).ok_or(ResultCode::UNSUPPORTED_FEATURE)
    }

    /// Whether the adapter can wait for an event that is signalled again, which shared events need.
    ///
    /// v1 cannot: an event that has completed stays complete, and queues no longer wait for it. Later generations can;
    /// if they have no function that makes such events, [`signal`] signals them.
    fn shares_events(self) -> bool {
        let has = |function| adapter::has(self.via, function);
        registry::generation(self.via) >= 2
            && (has(Function::urEventCreateExp) || has(Function::urEnqueueEventsWaitWithBarrierExt))
    }

    fn context(self, context: Arg<Context>) -> Result<ZeHandle, ResultCode> {
        self.native()?.context(context)
    }

    fn device(self, device: Arg<Device>) -> Result<ZeHandle, ResultCode> {
        self.native()?.device(device)
    }

    fn device_in(self, context: Arg<Context>, device: Arg<Device>) -> Result<ZeHandle, ResultCode> {
        self.native()?.device_in(context, device)
    }
}

/// Functions of the backend, each with the expression that carries out a call.
macro_rules! functions {
    ($(fn $name:ident($at:ident, $($param:ident: $role:ident),*) = $done:expr;)*) => {$(
        fn $name(&self, $($param: Arg<$role>),*) -> ResultCode {
            let $at = *self;
            answer(|| $done)
        }
    )*};
}

impl Backend for LevelZero {
    fn via(&self) -> usize {
        self.via
    }

    fn urContextCreate(
        &self,
        count: Arg<Count>,
        devices: Arg<Devices>,
        properties: Arg<Desc>,
        context: Arg<OutContext>,
    ) -> ResultCode {
        let result = adapter::urContextCreate(self.via)(count, devices, properties, context);
        if result.is_success()
            && let Some(made) = context.read_after()
        {
            without_adapter::add_context(*self, made);
        }
        result
    }

    fn urContextRelease(&self, context: Arg<Context>) -> ResultCode {
        if context.null().is_none()
            && let Ok(native) = self.native()
            && native.is_last_reference(context)
            && let Ok(ze_context) = native.context(context)
        {
            if Family::Memory.uses_level_zero(self.via) {
                memory::end_context(context.get().0, ze_context);
            }
            signal::end_context(ze_context);
            without_adapter::remove_context(ze_context);
        }
        adapter::urContextRelease(self.via)(context)
    }

    functions! {
        fn urIPCGetMemHandleExp(at, context: Context, pointer: Pointer, data: OutData, size: OutDataSize) =
            memory::get(at, context, pointer, data, size);
        fn urIPCPutMemHandleExp(at, context: Context, data: Data) = memory::put(at, context, data);
        fn urIPCOpenMemHandleExp(at, context: Context, device: Device, data: OpenedData, size: DataSize, pointer: OutPointer) =
            memory::open(at, context, device, data, size, pointer);
        fn urIPCCloseMemHandleExp(at, context: Context, pointer: Pointer) = memory::close(at, context, pointer);

        fn urPhysicalMemCreate(at, context: Context, device: Device, size: Size, properties: Desc, memory: OutObject) =
            physical::create(at, context, device, size, properties, memory);
        fn urPhysicalMemRetain(at, memory: PhysicalMem) = physical::retain(at, memory);
        fn urPhysicalMemRelease(at, memory: PhysicalMem) = physical::release(at, memory);
        fn urPhysicalMemGetInfo(at, memory: PhysicalMem, property: Property, size: ValueSize, value: OutValue, size_ret: OutValueSize) =
            physical::get_info(at, memory, property, Query { size, value, size_ret });
        fn urVirtualMemMap(at, context: Context, pointer: Pointer, size: Size, memory: PhysicalMem, offset: Offset, flags: Flags) =
            physical::map(at, context, pointer, size, memory, offset, flags);
        // The adapter reserved the addresses; it unmaps what anybody mapped there.
        fn urVirtualMemUnmap(at, context: Context, pointer: Pointer, size: Size) =
            result::done(adapter::urVirtualMemUnmap(at.via)(context, pointer, size));
        fn urIPCGetPhysMemHandleExp(_at, context: Context, memory: PhysicalMem, data: OutData, size: OutDataSize) =
            physical::get(context, memory, data, size);
        fn urIPCPutPhysMemHandleExp(_at, context: Context, data: Data) = physical::put(context, data);
        fn urIPCOpenPhysMemHandleExp(at, context: Context, device: Device, data: OpenedData, size: DataSize, memory: OutObject) =
            physical::open(at, context, device, data, size, memory);
        fn urIPCClosePhysMemHandleExp(at, context: Context, memory: PhysicalMem) = physical::close(at, context, memory);

        fn urDeviceGetInfo(at, device: Device, property: IpcProperty, size: ValueSize, value: OutBool, size_ret: OutValueSize) =
            support::get_info(at, device, property, Query { size, value, size_ret });

        fn urEventCreateExp(at, context: Context, device: Device, desc: Desc, event: OutObject) =
            event::create(at, context, device, desc, event);
        fn urEventRetain(at, event: Event) = event::retain(at, event);
        fn urEventRelease(at, event: Event) = event::release(at, event);
        // Every event is the adapter's own, or wrapped by it.
        fn urEventGetInfo(at, event: Event, property: EventProperty, size: ValueSize, value: OutEventValue, size_ret: OutValueSize) =
            result::done(adapter::urEventGetInfo(at.via)(event, property, size, value, size_ret));
        fn urEventWait(at, count: Count, events: Events) = result::done(adapter::urEventWait(at.via)(count, events));
        fn urEnqueueEventsWaitWithBarrierExt(at, queue: Queue, properties: Unseen, count: WaitListLength, events: WaitList, event: InOutEvent) =
            event::enqueue(at, signal::Barrier { queue, properties, count, events }, event);
        fn urIPCGetEventHandleExp(at, event: Event, data: OutData, size: OutDataSize) = event::get(at, event, data, size);
        fn urIPCPutEventHandleExp(at, context: Context, data: Data) = event::put(at, context, data);
        fn urIPCOpenEventHandleExp(at, context: Context, data: OpenedData, size: DataSize, event: OutObject) =
            event::open(at, context, data, size, event);
    }
}
