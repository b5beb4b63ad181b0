//! Entry points that share memory with other processes.
//!
//! The producer's side writes into the handle where a range lies; the consumer's side opens that range and maps its
//! pages and no others (`shared_memory::import`). An open that fails returns `INVALID_ARGUMENT`, as with Intel's
//! driver. Must never export what was itself opened or imported.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::Arc;

use super::allocation::{Allocation, Kind, Origin};
use super::{lookup, physical, shareable::Shareable};
use crate::discovery::{context::Context, device::Device};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Address, In, Out, Pointer, handles::Handle, layout::IpcHandle};
use crate::platform::{descriptor, settings};
use crate::shared_memory::import::{Import, ImportError, fetch, is_here};
use crate::shared_memory::{PAGE, exports, handle_data::HandleData, own_file::Description};

/// `zeMemGetIpcHandle` (ze_api.h). A handle for the allocation, or the mapped physical memory, that contains the
/// pointer. It opens at the base. Also accepts the handle of physical memory instead of a pointer. `INVALID_ARGUMENT`
/// for any other pointer.
pub extern "C" fn get(context: Handle<Context>, pointer: Address, handle: Out<IpcHandle>) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        handle.check()?;
        handle.write(export(&named(pointer)?)?)
    })
}

/// `zeMemGetIpcHandleWithProperties` (ze_api.h). There is one type of IPC handle, so the properties are ignored.
pub extern "C" fn get_with_properties(
    context: Handle<Context>,
    pointer: Address,
    _properties: Address,
    handle: Out<IpcHandle>,
) -> ZeResult {
    get(context, pointer, handle)
}

/// What an address, or a handle of physical memory in place of one, stands for: `INVALID_ARGUMENT` for anything else.
fn named(pointer: Address) -> Outcome<Shareable> {
    let found = Shareable::at(pointer.number()).or_else(|| Shareable::of_handle(pointer.number()));
    found.ok_or(ZeResult::INVALID_ARGUMENT)
}

/// A handle of memory of this process: `INVALID_ARGUMENT` for memory that was opened or imported.
fn export(memory: &Shareable) -> Outcome<IpcHandle> {
    let span = memory.span().ok_or(ZeResult::INVALID_ARGUMENT)?;
    Ok(IpcHandle { data: exports::get(span, memory.description(), !settings::get().bare_handles)? })
}

/// `zeMemGetFileDescriptorFromIpcHandleExp` (ze_api.h). The descriptor in a handle of this process. It belongs to the
/// device, and its file may hold other memory too. `OUT_OF_HOST_MEMORY` for anything else and for a handle that was
/// put, as with Intel's driver.
pub extern "C" fn get_descriptor(context: Handle<Context>, handle: IpcHandle, descriptor: Out<u64>) -> ZeResult {
    call(|| {
        context.get()?;
        descriptor.check()?;
        let own = |data: &HandleData| is_memory(data.kind) && exports::is_exported(data);
        let data = HandleData::decode(&handle.data).filter(own).ok_or(ZeResult::OUT_OF_HOST_MEMORY)?;
        descriptor.write(data.descriptor as u64)
    })
}

/// `zeMemGetIpcHandleFromFileDescriptorExp` (ze_api.h). A handle for the memory whose descriptor
/// `zeMemGetAllocProperties` has returned. `OUT_OF_HOST_MEMORY` for any other descriptor, as with Intel's driver.
pub extern "C" fn get_by_descriptor(context: Handle<Context>, descriptor: u64, handle: Out<IpcHandle>) -> ZeResult {
    call(|| {
        context.get()?;
        handle.check()?;
        let found = i32::try_from(descriptor).ok().and_then(Shareable::by_descriptor);
        handle.write(export(&found.ok_or(ZeResult::OUT_OF_HOST_MEMORY)?)?)
    })
}

/// `zeMemPutIpcHandle` (ze_api.h). `SUCCESS` also for a handle that is unknown or whose memory is gone, as with Intel's
/// driver: freeing the memory ends its handles anyway.
pub extern "C" fn put(context: Handle<Context>, handle: IpcHandle) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        Allocation::put(&handle);
        Ok(())
    })
}

/// `zeMemOpenIpcHandle` (ze_api.h). Every call maps the memory at a new address, in the producer too. A handle may
/// consist of a descriptor of this process and zeros, as several communication libraries make it. `INVALID_ARGUMENT`
/// for memory of a device that is no peer.
pub extern "C" fn open(
    context: Handle<Context>,
    device: Handle<Device>,
    handle: IpcHandle,
    flags: u32,
    pointer: Out<Pointer>,
) -> ZeResult {
    call(|| {
        context.get()?;
        let device = device.get()?;
        pointer.check()?;
        if flags & !0b11 != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let base = Allocation::open(device, &handle)?;
        if settings::get().leak_open_fd {
            leak_descriptor(&handle.data);
        }
        pointer.write(Pointer::to(base))
    })
}

impl Allocation {
    /// A handle for the memory that contains an address: `INVALID_ARGUMENT` for memory that was opened or imported, and
    /// for any other address.
    pub fn export(address: usize) -> Outcome<IpcHandle> {
        export(&Shareable::at(address).ok_or(ZeResult::INVALID_ARGUMENT)?)
    }

    /// Puts a handle of this process. Anything else is ignored.
    pub fn put(handle: &IpcHandle) {
        exports::put(&handle.data, is_memory);
    }

    /// Opens the memory that a handle names, and returns its address, another one each time: `INVALID_ARGUMENT` for a
    /// handle that is refused, also because the device is no peer of that of the memory.
    pub fn open(device: Arc<Device>, handle: &IpcHandle) -> Outcome<usize> {
        let refuse = |reason: &str| ZeResult::INVALID_ARGUMENT.because(|| reason);
        let not_memory = || ImportError::Refused("it is not a handle of memory".into());
        let opened = match HandleData::bare_descriptor(&handle.data) {
            Some(number) => Import::by_descriptor(number, PAGE),
            None => open_range(&handle.data),
        };
        let (import, kind, size) = opened
            .and_then(|(import, found)| {
                Device::reach(Some(&device), found.device).map_err(ImportError::Refused)?;
                Ok((import, memory_kind(found.kind).ok_or_else(not_memory)?, found.size))
            })
            .map_err(|error| match error {
                ImportError::Refused(reason) => refuse(&reason),
                ImportError::Host(code) => code,
            })?;
        Ok(lookup::insert(Self::opened(import, kind, size as usize, device)))
    }

    /// Closes memory that was opened: `INVALID_ARGUMENT` for any other address.
    pub fn close(address: usize) -> Outcome {
        lookup::remove(address, |origin| matches!(origin, Origin::Opened(_))).map(drop)
    }
}

/// The fault of `ZE_SOFT_OPEN_FD=leak`: one more descriptor of the file that a handle names, which is
/// never closed. None where this process has no descriptors left.
fn leak_descriptor(bytes: &[u8; 64]) {
    let leaked = match (HandleData::bare_descriptor(bytes), HandleData::decode(bytes)) {
        (Some(number), _) => descriptor::duplicate(number),
        (None, Some(data)) if is_here(&data) => descriptor::duplicate(data.descriptor),
        (None, Some(data)) => fetch(&data).map(OwnedFd::from).map_err(io::Error::other),
        (None, None) => return,
    };
    drop(leaked.map(IntoRawFd::into_raw_fd));
}

/// `zexMemGetIpcHandles` of Intel's driver, which has one handle for each tile of a device: here it is one. Without an
/// array only the count is returned.
pub extern "C" fn get_all(
    context: Handle<Context>,
    pointer: Address,
    count: Out<u32>,
    handles: Out<IpcHandle>,
) -> ZeResult {
    call(|| {
        context.get()?;
        pointer.check()?;
        count.check()?;
        let found = Shareable::at(pointer.number()).ok_or(ZeResult::INVALID_ARGUMENT)?;
        if !handles.is_null() {
            handles.write(export(&found)?)?;
        }
        count.write(1)
    })
}

/// `zexMemOpenIpcHandles` of Intel's driver, for one handle: `INVALID_ARGUMENT` for any other number.
pub extern "C" fn open_all(
    context: Handle<Context>,
    device: Handle<Device>,
    count: u32,
    handles: In<IpcHandle>,
    flags: u32,
    pointer: Out<Pointer>,
) -> ZeResult {
    match (count, handles.read()) {
        (1, Ok(handle)) => open(context, device, handle, flags, pointer),
        (1, Err(error)) => error,
        _ => ZeResult::INVALID_ARGUMENT,
    }
}

/// Opens the range that the bytes of a handle describe.
fn open_range(bytes: &[u8; 64]) -> Result<(Import, Description), ImportError> {
    let refused = |reason: &str| ImportError::Refused(reason.into());
    let data =
        HandleData::decode(bytes).ok_or_else(|| refused("the bytes are damaged or not a handle of this device"))?;
    if !is_memory(data.kind) {
        return Err(refused("it is not a handle of memory"));
    }
    let length = (data.size as usize).checked_next_multiple_of(PAGE).ok_or_else(|| refused("it is too large"))?;
    Ok((Import::open(&data, length)?, Description { kind: data.kind, device: data.device, size: data.size }))
}

/// `zeMemCloseIpcHandle` (ze_api.h). `INVALID_ARGUMENT` for any address that open did not return.
pub extern "C" fn close(context: Handle<Context>, pointer: Address) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        pointer.check()?;
        Allocation::close(pointer.number())
    })
}

fn is_memory(kind: u16) -> bool {
    memory_kind(kind).is_some()
}

fn memory_kind(kind: u16) -> Option<Kind> {
    Kind::from_number(u32::from(kind & !physical::EXPORTABLE))
}
