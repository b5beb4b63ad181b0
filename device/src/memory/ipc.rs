//! Entry points that share memory with other processes.
//!
//! The producer's side says where an allocation lies; the consumer's side gets at the file, by the descriptor in the
//! handle if that is the right file here already (libumf and the Unified Runtime have fetched it), else by fetching it
//! from the producer, and maps the allocation's pages and no others. Must never close a descriptor that came in a
//! handle, and must leave nothing open or mapped when it answers an error. All failures to import are
//! `INVALID_ARGUMENT`, as with Intel's driver.

use std::process;
use std::sync::Arc;

use super::allocation::{Allocation, Kind, Origin};
use super::physical::PhysicalMemory;
use super::{lookup, reservation};
use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::ffi::handles::Handle;
use crate::ffi::layout::memory::IpcMemHandle;
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Address, Out};
use crate::platform::log;
use crate::shared_memory::handle_data::HandleData;
use crate::shared_memory::mapping::Mapping;
use crate::shared_memory::segment::OpenRecord;
use crate::shared_memory::segment_file::SegmentFile;
use crate::shared_memory::{PAGE, exports};

/// `zeMemGetIpcHandle` (ze_api.h): a handle for the allocation, or the physical memory, that the pointer lies in; it
/// opens at the base.
pub extern "C" fn get(context: Handle<Context>, pointer: Address, handle: Out<IpcMemHandle>) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        handle.check()?;
        handle.write(export(&Shareable::at(pointer.number()).ok_or(ZeResult::INVALID_ARGUMENT)?)?)
    })
}

/// `zeMemGetIpcHandleWithProperties` (ze_api.h): the same, and instead of a pointer it takes the handle of physical
/// memory too. There is one type of handle, so what the chain wishes for is passed over.
pub extern "C" fn get_with_properties(
    context: Handle<Context>,
    pointer: Address,
    _properties: Address,
    handle: Out<IpcMemHandle>,
) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        handle.check()?;
        let found = match Shareable::at(pointer.number()) {
            Some(found) => found,
            None => Shareable::Physical(Handle::from_word(pointer.number()).get()?),
        };
        handle.write(export(&found)?)
    })
}

/// What a handle can be asked for.
enum Shareable {
    Allocation(Arc<Allocation>),
    Physical(Arc<PhysicalMemory>),
}

impl Shareable {
    fn at(address: usize) -> Option<Self> {
        let allocation = lookup::find(address).map(Self::Allocation);
        allocation.or_else(|| reservation::view(address).map(|view| Self::Physical(view.physical)))
    }
}

/// The handle of what was made in this process: `INVALID_ARGUMENT` for what was opened or imported.
fn export(memory: &Shareable) -> Outcome<IpcMemHandle> {
    let (span, kind, size) = match memory {
        Shareable::Allocation(allocation) => match allocation.origin() {
            Origin::Own { span, .. } => (Some(span), allocation.kind, allocation.size),
            Origin::Opened { .. } => (None, allocation.kind, allocation.size),
        },
        Shareable::Physical(physical) => (physical.span(), physical.kind, physical.size),
    };
    let span = span.ok_or(ZeResult::INVALID_ARGUMENT)?;
    exports::get(span);
    Ok(IpcMemHandle { data: HandleData::of(span, kind as u16, size as u64).encode() })
}

/// `zeMemGetFileDescriptorFromIpcHandleExp` (ze_api.h): the descriptor that a handle of this process says, which stays the
/// device's. It may be that of a file with other memory too. What is not such a handle, or was put, is `OUT_OF_HOST_MEMORY`, as
/// with Intel's driver.
pub extern "C" fn get_descriptor(context: Handle<Context>, handle: IpcMemHandle, descriptor: Out<u64>) -> ZeResult {
    call(|| {
        context.get()?;
        descriptor.check()?;
        let own = |data: &HandleData| {
            let memory = Kind::from_number(u32::from(data.kind)).is_some();
            memory && data.pid == process::id() && exports::is_exported(data.identity)
        };
        let data = HandleData::decode(&handle.data).filter(own).ok_or(ZeResult::OUT_OF_HOST_MEMORY)?;
        descriptor.write(data.exported as u64)
    })
}

/// `zeMemGetIpcHandleFromFileDescriptorExp` (ze_api.h): a handle for the memory that `zeMemGetAllocProperties` has said this
/// descriptor of. Any other is `OUT_OF_HOST_MEMORY`, as with Intel's driver.
pub extern "C" fn get_by_descriptor(context: Handle<Context>, descriptor: u64, handle: Out<IpcMemHandle>) -> ZeResult {
    call(|| {
        context.get()?;
        handle.check()?;
        let found = i32::try_from(descriptor).ok().and_then(lookup::exported).ok_or(ZeResult::OUT_OF_HOST_MEMORY)?;
        handle.write(export(&Shareable::Allocation(found))?)
    })
}

/// `zeMemPutIpcHandle` (ze_api.h). A handle that is not known, or whose memory is gone, is no error: the documented
/// driver answers success, and freeing the memory ends its handles anyway.
pub extern "C" fn put(context: Handle<Context>, handle: IpcMemHandle) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        put_handle(&handle.data, |kind| Kind::from_number(u32::from(kind)).is_some());
        Ok(())
    })
}

/// Puts a handle that this process has handed out, if it is for something that `wanted` says.
pub(crate) fn put_handle(bytes: &[u8; 64], wanted: impl FnOnce(u16) -> bool) {
    let own = |data: &HandleData| data.pid == process::id() && wanted(data.kind);
    if let Some(data) = HandleData::decode(bytes).filter(own) {
        exports::put(data.identity);
    }
}

/// `zeMemOpenIpcHandle` (ze_api.h): a new address for each call, also in the producer itself.
pub extern "C" fn open(
    context: Handle<Context>,
    device: Handle<Device>,
    handle: IpcMemHandle,
    flags: u32,
    pointer: Out<Address>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        pointer.check()?;
        if flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let refused = |why: &str| {
            log::note(&format!("zeMemOpenIpcHandle: {why}"));
            ZeResult::INVALID_ARGUMENT
        };
        let data =
            HandleData::decode(&handle.data).ok_or_else(|| refused("the bytes are damaged or not a handle of ours"))?;
        let kind = Kind::from_number(u32::from(data.kind)).ok_or_else(|| refused("unknown memory type"))?;
        let file = SegmentFile::of(&data).map_err(|why| refused(&why))?;
        let length = (data.size as usize).checked_next_multiple_of(PAGE).ok_or(ZeResult::INVALID_ARGUMENT)?;
        if !file.holds(&data, length as u64) {
            return Err(refused("the allocation lies outside of its file"));
        }
        let record = OpenRecord::open(file.as_fd(), u32::from(data.record), data.identity)
            .map_err(|_| refused("its producer has freed the memory or put the handle"))?;
        let mapping = Mapping::shared(file.as_fd(), data.offset, length, PAGE)?;
        let opened = Allocation::opened(mapping, record, kind, data.size as usize, device);
        pointer.write(Address::of(lookup::insert(opened)))
    })
}

/// `zeMemCloseIpcHandle` (ze_api.h): `INVALID_ARGUMENT` for anything but an address that open gave.
pub extern "C" fn close(context: Handle<Context>, pointer: Address) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        pointer.check()?;
        lookup::remove(pointer.number(), |origin| matches!(origin, Origin::Opened { .. })).map(drop)
    })
}
