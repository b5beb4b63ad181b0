//! Attributes of shared memory that say who may use atomic operations on it.
//!
//! All of them work on all memory, so an attribute changes nothing: the device keeps it for whoever asks. It is that of the
//! whole allocation, and of one device. Must never accept a range that is not shared memory.

use std::sync::Arc;

use super::allocation::{Allocation, Kind};
use super::lookup;
use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::ffi::handles::Handle;
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Address, Out};

/// All flags of `ze_memory_atomic_attr_exp_flags_t`.
const FLAGS: u32 = 0x7f;

/// `zeMemSetAtomicAccessAttributeExp` (ze_api.h). `INVALID_ARGUMENT` unless the range lies in one shared allocation.
pub extern "C" fn set(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
    attributes: u32,
) -> ZeResult {
    call(|| {
        let (allocation, device) = shared(context, device, pointer, size)?;
        if attributes & !FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        allocation.atomics.lock().insert(device.numbers(), attributes);
        Ok(())
    })
}

/// `zeMemGetAtomicAccessAttributeExp` (ze_api.h). 0 before the first call that sets some; errors as there.
pub extern "C" fn get(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
    attributes: Out<u32>,
) -> ZeResult {
    call(|| {
        let (allocation, device) = shared(context, device, pointer, size)?;
        let found = allocation.atomics.lock().get(&device.numbers()).copied();
        attributes.write(found.unwrap_or_default())
    })
}

/// The shared allocation that contains a range.
fn shared(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
) -> Outcome<(Arc<Allocation>, Arc<Device>)> {
    context.get()?;
    let device = device.get()?;
    pointer.check()?;
    let contains = |allocation: &Arc<Allocation>| {
        let offset = pointer.number().saturating_sub(allocation.base());
        allocation.kind == Kind::Shared && offset.checked_add(size).is_some_and(|end| end <= allocation.size)
    };
    let found = lookup::find(pointer.number()).filter(contains);
    Ok((found.ok_or(ZeResult::INVALID_ARGUMENT)?, device))
}
