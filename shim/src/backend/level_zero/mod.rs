//! Our own backend: the entry points that share memory between processes, said in Level Zero.
//!
//! It uses the adapter's public functions only ([`native`]) and the driver that the process has loaded ([`driver`]), so it
//! serves any runtime, also one whose adapter has no such entry point. What it hands to other processes is sealed
//! ([`seal`]) and travels as libumf's does ([`fetch`]); what it handed out, it knows again ([`issued`]).
//!
//! Wrong, foreign, altered and stale data get the documented error and touch nothing. Nothing of the caller's is ever
//! written to but the places for answers.

use urscope_schema::api::{
    UrResult,
    role::{Context, Data, DataSize, Device, OutData, OutDataSize, OutPointer, Pointer},
};

use self::{driver::ZeHandle, native::Native, result::answer};
use super::{Backend, Family, adapter};

mod caller;
mod driver;
mod fetch;
mod issued;
mod memory;
mod native;
mod result;
pub mod seal;

/// In a forked child.
pub fn after_fork_in_child() {
    fetch::after_fork_in_child();
    memory::after_fork_in_child();
}

/// Our backend, for the calls that came to one adapter.
#[derive(Clone, Copy, Debug)]
pub struct LevelZero {
    via: usize,
}

impl LevelZero {
    /// For the adapter of that number.
    pub const fn new(via: usize) -> Self {
        Self { via }
    }

    fn native(self) -> Result<&'static Native, UrResult> {
        Native::of(self.via).ok_or(UrResult::UNSUPPORTED_FEATURE)
    }

    fn context(self, context: usize) -> Result<ZeHandle, UrResult> {
        self.native()?.context(context)
    }

    fn device(self, device: usize) -> Result<ZeHandle, UrResult> {
        self.native()?.device(device)
    }
}

impl Backend for LevelZero {
    fn via(&self) -> usize {
        self.via
    }

    fn urContextRelease(&self, context: Context) -> UrResult {
        if Family::Memory.is_ours(self.via)
            && context.0 != 0
            && let Ok(native) = self.native()
            && native.is_last_reference(context.0)
            && let Ok(ze_context) = native.context(context.0)
        {
            memory::end_of_context(context.0, ze_context);
        }
        adapter::urContextRelease(self.via)(context)
    }

    fn urIPCGetMemHandleExp(&self, context: Context, pointer: Pointer, data: OutData, size: OutDataSize) -> UrResult {
        answer(|| memory::get(*self, context, pointer, data.0, size.0))
    }

    fn urIPCPutMemHandleExp(&self, context: Context, data: Data) -> UrResult {
        answer(|| memory::put(*self, context, data))
    }

    fn urIPCOpenMemHandleExp(
        &self,
        context: Context,
        device: Device,
        data: Data,
        size: DataSize,
        pointer: OutPointer,
    ) -> UrResult {
        answer(|| memory::open(*self, context, device, data, size, pointer))
    }

    fn urIPCCloseMemHandleExp(&self, context: Context, pointer: Pointer) -> UrResult {
        answer(|| memory::close(*self, context, pointer))
    }
}
