//! Memory: the producer's exports of allocations, and the consumer's mappings.
//!
//! The driver's handle of an allocation is got with the first handle that the program gets for a pointer into it, and
//! put with the last. Every open makes a mapping with its own close. The only lock that may be held across a call of
//! the driver is that of an allocation's export.

use std::{collections::hash_map::Entry, os::fd::AsRawFd as _, sync::Arc};

use urscope_schema::api::role::{
    Context, Data, DataSize, Device, OpenedData, OutData, OutDataSize, OutPointer, Pointer,
};
use urscope_schema::api::{Function, ResultCode};

use super::driver::{Block, Driver, IpcHandle, MappedBase, ZeHandle, driver};
use super::handle_data::{HandleData, Refusal};
use super::issued_handles::{Contents, IssuedHandles};
use super::{LevelZero, fetch::Process, result};
use crate::backend::{Family, adapter};
use crate::raw::args::caller::{receive, with_data};
use crate::raw::{args::Arg, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};
use crate::sharing::ranges;

/// The driver's handle of one allocation, and the number of the program's handles that use it.
#[derive(Default)]
struct Export {
    handle: Option<IpcHandle>,
    gets: usize,
}

/// The reference that a get holds to an export.
pub(super) struct ExportReference {
    block: Block,
    export: Arc<Mutex<Export>>,
}

static EXPORTS: ForkReset<Mutex<HashMap<Block, Arc<Mutex<Export>>>>> = ForkReset::new(Mutex::default);

pub(super) static ISSUED_HANDLES: IssuedHandles<ExportReference> = IssuedHandles::new(Family::Memory);

/// Who opened a mapping.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// This backend. `base` is where the driver's mapping begins.
    OwnBackend { base: MappedBase },
    /// The adapter, from its own data.
    Adapter,
}

#[derive(Clone, Copy)]
struct Mapping {
    context: usize,
    origin: Origin,
    /// How often the adapter returned this pointer. This backend returns a pointer once.
    opens: usize,
}

static MAPPINGS: ForkReset<Mutex<HashMap<usize, Mapping>>> = ForkReset::new(Mutex::default);

/// Forgets the parent's exports and mappings.
pub(crate) fn after_fork_in_child() {
    EXPORTS.reset(Mutex::default());
    MAPPINGS.reset(Mutex::default());
    ISSUED_HANDLES.after_fork_in_child();
}

/// `urIPCGetMemHandleExp`
pub(crate) fn get(
    at: LevelZero,
    context: Arg<Context>,
    pointer: Arg<Pointer>,
    data: Arg<OutData>,
    size: Arg<OutDataSize>,
) -> Result<(), ResultCode> {
    let context = at.context(context)?;
    let pointer = pointer.get().0;
    ISSUED_HANDLES.answer_get(data, size, || export(context, pointer))
}

/// The contents of handle data for the allocation that contains `pointer`, and a reference to its export.
pub(super) fn export(context: ZeHandle, pointer: usize) -> Result<(Contents, ExportReference), ResultCode> {
    let block = driver().block(context, pointer).map_err(|_| ResultCode::INVALID_ARGUMENT)?;
    let offset =
        pointer.checked_sub(block.base).filter(|offset| *offset < block.size).ok_or(ResultCode::INVALID_ARGUMENT)?;
    let (reference, handle) = ExportReference::new(driver(), context, block)?;
    ranges::note_block(pointer, [block.base, block.base + block.size]);
    let contents =
        Contents { size: block.size as u64, offset: offset as u64, descriptor: descriptor(&handle), native: handle.0 };
    Ok((contents, reference))
}

/// `urIPCPutMemHandleExp`
pub(crate) fn put(at: LevelZero, context: Arg<Context>, data: Arg<Data>) -> Result<(), ResultCode> {
    result::not_null(context)?;
    result::not_null(data)?;
    if let Some(reference) = ISSUED_HANDLES.take(data.get().0)? {
        // A context that the adapter no longer knows has no handles to put.
        reference.end(driver(), at.context(context).ok());
    }
    Ok(())
}

/// `urIPCOpenMemHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    out: Arg<OutPointer>,
) -> Result<(), ResultCode> {
    result::not_null(data)?;
    result::not_null(out)?;
    let ze_context = at.context(context)?;
    let ze_device = at.device_in(context, device)?;
    let bytes = data.copy(size).ok_or(ResultCode::INVALID_VALUE)?;
    let (pointer, origin) = match HandleData::decode(&bytes) {
        Ok(handle_data) if handle_data.kind == Family::Memory => open_own(&handle_data, ze_context, ze_device)?,
        Err(Refusal::Foreign) => (open_by_adapter(at, context, device, bytes)?, Origin::Adapter),
        _ => return Err(ResultCode::INVALID_VALUE),
    };
    register(pointer, context.get().0, origin);
    out.write(pointer);
    Ok(())
}

pub(super) fn register(pointer: usize, context: usize, origin: Origin) {
    match MAPPINGS.get().lock().entry(pointer) {
        Entry::Occupied(mut mapping)
            if matches!((mapping.get().origin, origin), (Origin::Adapter, Origin::Adapter)) =>
        {
            mapping.get_mut().opens += 1;
        }
        place => drop(place.insert_entry(Mapping { context, origin, opens: 1 })),
    }
}

/// `urIPCCloseMemHandleExp`
pub(crate) fn close(at: LevelZero, context: Arg<Context>, pointer: Arg<Pointer>) -> Result<(), ResultCode> {
    result::not_null(pointer)?;
    let ze_context = at.context(context)?;
    match unregister(pointer.get().0, context.get().0)? {
        Origin::OwnBackend { base } => driver().close(ze_context, base),
        Origin::Adapter => result::done(adapter::urIPCCloseMemHandleExp(at.via)(context, pointer)),
    }
}

/// Removes a mapping of a context before it is closed, because its address may be reused afterwards.
pub(super) fn unregister(pointer: usize, context: usize) -> Result<Origin, ResultCode> {
    let mut mappings = MAPPINGS.get().lock();
    let Entry::Occupied(mut mapping) = mappings.entry(pointer) else {
        return Err(ResultCode::INVALID_ARGUMENT);
    };
    if mapping.get().context != context {
        return Err(ResultCode::INVALID_CONTEXT);
    }
    mapping.get_mut().opens -= 1;
    let origin = mapping.get().origin;
    if mapping.get().opens == 0 {
        mapping.remove();
    }
    Ok(origin)
}

/// Closes the mappings of a context at its last release.
pub(crate) fn end_context(context: usize, ze_context: ZeHandle) {
    let ended: Vec<Mapping> =
        MAPPINGS.get().lock().extract_if(|_, mapping| mapping.context == context).map(|(_, mapping)| mapping).collect();
    for mapping in ended {
        if let Origin::OwnBackend { base } = mapping.origin {
            let _ = driver().close(ze_context, base);
        }
    }
}

/// The producer's descriptor, which is the first field of a driver's handle.
fn descriptor(handle: &IpcHandle) -> i32 {
    handle.0.first_chunk().map_or(-1, |first| i32::from_ne_bytes(*first))
}

pub(super) fn open_own(
    handle_data: &HandleData,
    context: ZeHandle,
    device: ZeHandle,
) -> Result<(usize, Origin), ResultCode> {
    let mut handle = IpcHandle(handle_data.native);
    let producer = Process::producer_of(handle_data);
    let fetched = if producer == Process::this() {
        // The driver's handle may still be valid for other data that have not been put.
        ISSUED_HANDLES.find(handle_data.serial, |_| ()).ok_or(ResultCode::INVALID_VALUE)?;
        None
    } else {
        Some(producer.fetch(handle_data.descriptor)?)
    };
    if let (Some(fetched), Some(first)) = (&fetched, handle.0.first_chunk_mut()) {
        *first = fetched.as_raw_fd().to_ne_bytes();
    }
    let base = driver().open(context, device, handle).map_err(result::of_open)?;
    // The driver knows the size of the mapping; the producer may claim any.
    let size = driver().block(context, base.address()).map_or(handle_data.size, |block| block.size as u64);
    if handle_data.offset >= size {
        let _ = driver().close(context, base);
        return Err(ResultCode::INVALID_VALUE);
    }
    let pointer = base.address() + handle_data.offset as usize;
    ranges::note_block(pointer, [pointer, base.address().saturating_add(size as usize)]);
    Ok((pointer, Origin::OwnBackend { base }))
}

/// Opens data of the producer's adapter. The adapter gets a copy, because v1 writes into them.
fn open_by_adapter(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    mut bytes: Vec<u8>,
) -> Result<usize, ResultCode> {
    if !adapter::has(at.via, Function::urIPCOpenMemHandleExp) {
        return Err(ResultCode::INVALID_VALUE);
    }
    let open = adapter::urIPCOpenMemHandleExp(at.via);
    let opened = with_data(&mut bytes, |data, size| receive::<Pointer>(|out| open(context, device, data, size, out)))?;
    // v1 reports success for an open that failed, and writes no answer.
    opened.map(|pointer| pointer.get().0).ok_or(ResultCode::INVALID_VALUE)
}

impl ExportReference {
    /// A reference to the export of an allocation. The first one makes the export.
    fn new(driver: &Driver, context: ZeHandle, block: Block) -> Result<(Self, IpcHandle), ResultCode> {
        let reference = Self { block, export: EXPORTS.get().lock().entry(block).or_default().clone() };
        let handle = {
            let mut export = reference.export.lock();
            let handle = export.handle.map_or_else(|| driver.export(context, block), Ok);
            if let Ok(handle) = handle {
                export.handle = Some(handle);
                export.gets += 1;
            }
            handle
        };
        match handle {
            Ok(handle) => Ok((reference, handle)),
            Err(result) => {
                reference.prune();
                Err(result)
            }
        }
    }

    /// Releases the reference. The last one puts the driver's handle, unless the memory has been freed, which ends the
    /// handle: the driver may have reused its number.
    pub(super) fn end(self, driver: &Driver, context: Option<ZeHandle>) {
        {
            let mut export = self.export.lock();
            export.gets -= 1;
            if export.gets == 0
                && let Some(handle) = export.handle.take()
                && let Some(context) = context
                && driver.block(context, self.block.base) == Ok(self.block)
            {
                driver.end_export(context, handle);
            }
        }
        self.prune();
    }

    /// Removes an export without references.
    fn prune(self) {
        let mut exports = EXPORTS.get().lock();
        // The table and this reference: no other can be made while the table is locked.
        if Arc::strong_count(&self.export) == 2 && self.export.try_lock().is_some_and(|export| export.gets == 0) {
            exports.remove(&self.block);
        }
    }
}
