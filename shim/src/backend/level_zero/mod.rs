//! urscope's own backend: the functions that share memory between processes, implemented on Level Zero.
//!
//! It uses only the adapter's public functions ([`native`]) and the driver of the process ([`driver`]), so it works
//! with any runtime, also one whose adapter lacks these functions. Handle data have a checksum ([`handle_data`]), and
//! descriptors are fetched as libumf does ([`fetch`]). [`issued_handles`] has the handle data that have not been put.
//!
//! Wrong, foreign, altered and stale data get the documented error and change nothing. Only out-parameters are
//! written to the caller's memory.

use urscope_schema::api::{
    Function, UrResult,
    role::{
        Context, Count, Data, DataSize, Desc, Device, Devices, Event, Flags, InOutEvent, IpcProperty, Offset,
        OpenedData, OutBool, OutContext, OutData, OutDataSize, OutObject, OutPointer, OutValue, OutValueSize,
        PhysicalMem, Pointer, Property, Size, Unseen, Unseen32, ValueSize,
    },
};

use self::{driver::ZeHandle, native::NativeFunctions, result::answer};
use super::{
    Backend, Family,
    adapter::{self, registry},
};
use crate::raw::args::{Arg, caller::Query};

mod contexts;
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
    contexts::after_fork_in_child();
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

    fn native(self) -> Result<&'static NativeFunctions, UrResult> {
        NativeFunctions::of(self.via).ok_or(UrResult::UNSUPPORTED_FEATURE)
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

    fn context(self, context: Arg<Context>) -> Result<ZeHandle, UrResult> {
        self.native()?.context(context)
    }

    fn device(self, device: Arg<Device>) -> Result<ZeHandle, UrResult> {
        self.native()?.device(device)
    }

    fn device_in(self, context: Arg<Context>, device: Arg<Device>) -> Result<ZeHandle, UrResult> {
        self.native()?.device_in(context, device)
    }
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
    ) -> UrResult {
        let result = adapter::urContextCreate(self.via)(count, devices, properties, context);
        if result.is_success()
            && let Some(made) = context.read_after()
        {
            contexts::insert(*self, made);
        }
        result
    }

    fn urContextRelease(&self, context: Arg<Context>) -> UrResult {
        if context.null().is_none()
            && let Ok(native) = self.native()
            && native.is_last_reference(context)
            && let Ok(ze_context) = native.context(context)
        {
            if Family::Memory.uses_level_zero(self.via) {
                memory::end_context(context.get().0, ze_context);
            }
            signal::end_context(ze_context);
            contexts::remove(ze_context);
        }
        adapter::urContextRelease(self.via)(context)
    }

    fn urIPCGetMemHandleExp(
        &self,
        context: Arg<Context>,
        pointer: Arg<Pointer>,
        data: Arg<OutData>,
        size: Arg<OutDataSize>,
    ) -> UrResult {
        answer(|| memory::get(*self, context, pointer, data, size))
    }

    fn urIPCPutMemHandleExp(&self, context: Arg<Context>, data: Arg<Data>) -> UrResult {
        answer(|| memory::put(*self, context, data))
    }

    fn urIPCOpenMemHandleExp(
        &self,
        context: Arg<Context>,
        device: Arg<Device>,
        data: Arg<OpenedData>,
        size: Arg<DataSize>,
        pointer: Arg<OutPointer>,
    ) -> UrResult {
        answer(|| memory::open(*self, context, device, data, size, pointer))
    }

    fn urIPCCloseMemHandleExp(&self, context: Arg<Context>, pointer: Arg<Pointer>) -> UrResult {
        answer(|| memory::close(*self, context, pointer))
    }

    fn urPhysicalMemCreate(
        &self,
        context: Arg<Context>,
        device: Arg<Device>,
        size: Arg<Size>,
        properties: Arg<Desc>,
        memory: Arg<OutObject>,
    ) -> UrResult {
        answer(|| physical::create(*self, context, device, size, properties, memory))
    }

    fn urPhysicalMemRetain(&self, memory: Arg<PhysicalMem>) -> UrResult {
        answer(|| physical::retain(*self, memory))
    }

    fn urPhysicalMemRelease(&self, memory: Arg<PhysicalMem>) -> UrResult {
        answer(|| physical::release(*self, memory))
    }

    fn urPhysicalMemGetInfo(
        &self,
        memory: Arg<PhysicalMem>,
        property: Arg<Property>,
        size: Arg<ValueSize>,
        value: Arg<OutValue>,
        size_ret: Arg<OutValueSize>,
    ) -> UrResult {
        answer(|| physical::get_info(*self, memory, property, Query { size, value, size_ret }))
    }

    fn urVirtualMemMap(
        &self,
        context: Arg<Context>,
        pointer: Arg<Pointer>,
        size: Arg<Size>,
        memory: Arg<PhysicalMem>,
        offset: Arg<Offset>,
        flags: Arg<Flags>,
    ) -> UrResult {
        answer(|| physical::map(*self, context, (pointer, size), (memory, offset), flags))
    }

    fn urIPCGetPhysMemHandleExp(
        &self,
        context: Arg<Context>,
        memory: Arg<PhysicalMem>,
        data: Arg<OutData>,
        size: Arg<OutDataSize>,
    ) -> UrResult {
        answer(|| physical::get(context, memory, data, size))
    }

    fn urIPCPutPhysMemHandleExp(&self, context: Arg<Context>, data: Arg<Data>) -> UrResult {
        answer(|| physical::put(context, data))
    }

    fn urIPCOpenPhysMemHandleExp(
        &self,
        context: Arg<Context>,
        device: Arg<Device>,
        data: Arg<OpenedData>,
        size: Arg<DataSize>,
        memory: Arg<OutObject>,
    ) -> UrResult {
        answer(|| physical::open(*self, context, device, data, size, memory))
    }

    fn urIPCClosePhysMemHandleExp(&self, context: Arg<Context>, memory: Arg<PhysicalMem>) -> UrResult {
        answer(|| physical::close(*self, context, memory))
    }

    fn urDeviceGetInfo(
        &self,
        device: Arg<Device>,
        property: Arg<IpcProperty>,
        size: Arg<ValueSize>,
        value: Arg<OutBool>,
        size_ret: Arg<OutValueSize>,
    ) -> UrResult {
        support::get_info(*self, device, property, Query { size, value, size_ret })
    }

    fn urEventCreateExp(
        &self,
        context: Arg<Context>,
        device: Arg<Device>,
        desc: Arg<Desc>,
        event: Arg<OutObject>,
    ) -> UrResult {
        answer(|| event::create(*self, context, device, desc, event))
    }

    fn urEventRetain(&self, event: Arg<Event>) -> UrResult {
        answer(|| event::retain(*self, event))
    }

    fn urEventRelease(&self, event: Arg<Event>) -> UrResult {
        answer(|| event::release(*self, event))
    }

    fn urEnqueueEventsWaitWithBarrierExt(
        &self,
        queue: Arg<Unseen>,
        properties: Arg<Unseen>,
        count: Arg<Unseen32>,
        events: Arg<Unseen>,
        event: Arg<InOutEvent>,
    ) -> UrResult {
        answer(|| event::enqueue(*self, signal::Barrier { queue, properties, count, events }, event))
    }

    fn urIPCGetEventHandleExp(&self, event: Arg<Event>, data: Arg<OutData>, size: Arg<OutDataSize>) -> UrResult {
        answer(|| event::get(*self, event, data, size))
    }

    fn urIPCPutEventHandleExp(&self, context: Arg<Context>, data: Arg<Data>) -> UrResult {
        answer(|| event::put(*self, context, data))
    }

    fn urIPCOpenEventHandleExp(
        &self,
        context: Arg<Context>,
        data: Arg<OpenedData>,
        size: Arg<DataSize>,
        event: Arg<OutObject>,
    ) -> UrResult {
        answer(|| event::open(*self, context, data, size, event))
    }
}
