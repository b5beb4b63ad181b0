//! Physical memory: objects of ours where it is to be shared, the adapter's own where it is not.
//!
//! An object of ours begins with the adapter's dispatch table, as every handle must, and is known to us alone: every call
//! about it comes through the functions here. `ze_api.h` does not say whose the descriptors are that a driver hands out
//! and takes in ([`Native`]), so none is closed before it has been seen to be nobody else's.

use std::{
    collections::HashMap,
    fs::File,
    mem::ManuallyDrop,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    os::unix::fs::MetadataExt as _,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use urscope_schema::api::{
    UrResult, constants,
    role::{
        Context, Data, DataSize, Desc, Device, Flags, Offset, OutObject, OutValue, OutValueSize, PhysicalMem, Pointer,
        Property, Size, ValueSize,
    },
};

use super::{
    LevelZero, caller,
    driver::{Driver, ZeHandle, driver},
    fetch::{self, Process},
    handle_data::{HandleData, Kind, NATIVE_SIZE},
    issued::{Contents, Issued},
    result,
};
use crate::{backend::adapter, raw::fork_reset::ForkReset};

/// `ur_physical_mem_properties_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    stype: u32,
    unused: u32,
    next: usize,
    flags: u32,
    reserved: u32,
}

/// The driver's object, which the last of ours ends.
struct Native {
    context: ZeHandle,
    handle: ZeHandle,
    export: Mutex<Option<SharedDescriptor>>,
    /// What it was imported by.
    import: Option<SharedDescriptor>,
}

// SAFETY: a driver's handles may be used by any thread (`ze_api.h`: these functions are thread-safe).
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

/// A descriptor that the driver knows, and one of the same open file that is ours alone.
struct SharedDescriptor {
    number: Option<RawFd>,
    own: OwnedFd,
}

/// A physical memory handle that we hand out.
#[repr(C)]
struct Object {
    /// The adapter's dispatch table: the first word of every handle.
    table: usize,
    native: Arc<Native>,
    context: usize,
    device: usize,
    size: usize,
    opened: bool,
}

#[derive(Clone)]
enum Known {
    Ours(Arc<Object>),
    Adapters,
}

/// All physical memory of this family's adapters, and its references.
static KNOWN: ForkReset<Mutex<HashMap<usize, (Known, u32)>>> = ForkReset::new(Mutex::default);

/// What an unput get keeps: the descriptor that consumers fetch, and the object for as long as it lives.
struct Keeper {
    descriptor: OwnedFd,
    native: Weak<Native>,
}

static ISSUED: Issued<Keeper> = Issued::new(Kind::PhysicalMem);

/// In a forked child.
pub(crate) fn after_fork_in_child() {
    KNOWN.reset(Mutex::default());
    ISSUED.forget();
}

fn find(memory: PhysicalMem) -> Result<Known, UrResult> {
    result::handle(memory.0)?;
    KNOWN.get().lock().get(&memory.0).map(|(known, _)| known.clone()).ok_or(UrResult::INVALID_ARGUMENT)
}

fn add(object: Object, out: OutObject) {
    let object = Arc::new(object);
    let handle = Arc::as_ptr(&object).expose_provenance();
    KNOWN.get().lock().insert(handle, (Known::Ours(object), 1));
    caller::give(out.0, handle);
}

/// `urPhysicalMemCreate`
pub(crate) fn create(
    at: LevelZero,
    context: Context,
    device: Device,
    size: Size,
    properties: Desc,
    out: OutObject,
) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::handle(device.0)?;
    result::pointer(out.0)?;
    // SAFETY: the caller says that a `ur_physical_mem_properties_t` stands there, or hands in null.
    let asked = unsafe { std::ptr::with_exposed_provenance::<Properties>(properties.0).as_ref() };
    let flags = asked.map_or(0, |asked| asked.flags);
    if flags & !constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC != 0 {
        return Err(UrResult::INVALID_ENUMERATION);
    }
    if flags & constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC == 0 {
        let mut made = 0_usize;
        let place = OutObject((&raw mut made).expose_provenance());
        let made_by_adapter = adapter::urPhysicalMemCreate(at.via)(context, device, size, properties, place);
        result::done(made_by_adapter).map_err(result::of_size)?;
        // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
        let made = unsafe { (&raw const made).read_volatile() };
        KNOWN.get().lock().insert(made, (Known::Adapters, 1));
        caller::give(out.0, made);
        return Ok(());
    }
    let (ze_context, ze_device) = (at.context(context.0)?, at.device(device.0)?);
    let handle = driver().make_physical(ze_context, ze_device, size.0).map_err(result::of_size)?;
    let native = Arc::new(Native { context: ze_context, handle, export: Mutex::new(None), import: None });
    add(object(context, device, size.0, native, false), out);
    Ok(())
}

fn object(context: Context, device: Device, size: usize, native: Arc<Native>, opened: bool) -> Object {
    // SAFETY: a handle of the adapter's, whose first word is its dispatch table (since 2025.2).
    let table = unsafe { *std::ptr::with_exposed_provenance::<usize>(context.0) };
    Object { table, native, context: context.0, device: device.0, size, opened }
}

/// `urPhysicalMemRetain`
pub(crate) fn retain(at: LevelZero, memory: PhysicalMem) -> Result<(), UrResult> {
    if let Known::Adapters = find(memory)? {
        result::done(adapter::urPhysicalMemRetain(at.via)(memory))?;
    }
    if let Some((_, references)) = KNOWN.get().lock().get_mut(&memory.0) {
        *references += 1;
    }
    Ok(())
}

/// `urPhysicalMemRelease`
pub(crate) fn release(at: LevelZero, memory: PhysicalMem) -> Result<(), UrResult> {
    result::handle(memory.0)?;
    // Forgotten first: once it is released, its address may be another one's. The object ends after the lock.
    let (known, _last) = {
        let mut all = KNOWN.get().lock();
        let (known, references) = all.get_mut(&memory.0).ok_or(UrResult::INVALID_ARGUMENT)?;
        *references -= 1;
        let (known, ended) = (known.clone(), *references == 0);
        (known, if ended { all.remove(&memory.0) } else { None })
    };
    match known {
        Known::Ours(_) => Ok(()),
        Known::Adapters => result::done(adapter::urPhysicalMemRelease(at.via)(memory)),
    }
}

/// `urPhysicalMemGetInfo`
pub(crate) fn get_info(
    at: LevelZero,
    memory: PhysicalMem,
    property: Property,
    (size, value, size_ret): (ValueSize, OutValue, OutValueSize),
) -> Result<(), UrResult> {
    let Known::Ours(object) = find(memory)? else {
        return result::done(adapter::urPhysicalMemGetInfo(at.via)(memory, property, size, value, size_ret));
    };
    let inform = |bytes: &[u8]| caller::inform(bytes, size.0, value.0, size_ret.0);
    match property.0 {
        constants::UR_PHYSICAL_MEM_INFO_CONTEXT => inform(&object.context.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_DEVICE => inform(&object.device.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_SIZE => inform(&object.size.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_PROPERTIES => {
            let mut bytes = [0; size_of::<Properties>()];
            let properties = [
                (0, constants::UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES),
                (16, constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC),
            ];
            for (at, field) in properties {
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&field.to_ne_bytes());
                }
            }
            inform(&bytes)
        }
        constants::UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT => {
            let references = KNOWN.get().lock().get(&memory.0).map_or(0, |(_, references)| *references);
            inform(&references.to_ne_bytes())
        }
        _ => Err(UrResult::UNSUPPORTED_ENUMERATION),
    }
}

/// `urVirtualMemMap`
pub(crate) fn map(
    at: LevelZero,
    context: Context,
    (pointer, size): (Pointer, Size),
    (memory, offset): (PhysicalMem, Offset),
    flags: Flags,
) -> Result<(), UrResult> {
    let Ok(Known::Ours(object)) = find(memory) else {
        return result::done(adapter::urVirtualMemMap(at.via)(context, pointer, size, memory, offset, flags));
    };
    let ze_context = at.context(context.0)?;
    if offset.0.checked_add(size.0).is_none_or(|end| end > object.size) {
        return Err(UrResult::INVALID_VALUE);
    }
    // `ze_memory_access_attribute_t`
    let access = match flags.0 {
        flags if flags & constants::UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE != 0 => 1,
        flags if flags & constants::UR_VIRTUAL_MEM_ACCESS_FLAG_READ_ONLY != 0 => 2,
        _ => 0,
    };
    driver().map(ze_context, pointer.0, size.0, (object.native.handle, offset.0), access)
}

/// `urIPCGetPhysMemHandleExp`
pub(crate) fn get(context: Context, memory: PhysicalMem, data: usize, size: usize) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::pointer(data)?;
    result::pointer(size)?;
    let Known::Ours(object) = find(memory)? else { return Err(UrResult::INVALID_ARGUMENT) };
    ISSUED.give(data, size, || {
        let descriptor = object.native.descriptor()?;
        let said = Contents {
            size: object.size as u64,
            offset: 0,
            descriptor: descriptor.as_raw_fd(),
            native: identity(&descriptor)?,
        };
        Ok((said, Keeper { descriptor, native: Arc::downgrade(&object.native) }))
    })
}

/// `urIPCPutPhysMemHandleExp`
pub(crate) fn put(context: Context, data: Data) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::pointer(data.0)?;
    ISSUED.take(data.0).map(|keeper| drop(keeper.descriptor))
}

/// `urIPCOpenPhysMemHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Context,
    device: Device,
    data: Data,
    size: DataSize,
    out: OutObject,
) -> Result<(), UrResult> {
    result::pointer(data.0)?;
    result::pointer(out.0)?;
    let (ze_context, ze_device) = (at.context(context.0)?, at.device(device.0)?);
    let bytes = caller::copy(data.0, size.0)?;
    let sealed = match HandleData::decode(&bytes) {
        Ok(sealed) if sealed.kind == Kind::PhysicalMem => sealed,
        _ => return Err(UrResult::INVALID_VALUE),
    };
    let native = fetch_native(&sealed, ze_context, ze_device)?;
    add(object(context, device, sealed.size as usize, native, true), out);
    Ok(())
}

/// `urIPCClosePhysMemHandleExp`
pub(crate) fn close(at: LevelZero, context: Context, memory: PhysicalMem) -> Result<(), UrResult> {
    result::handle(context.0)?;
    match find(memory)? {
        Known::Ours(object) if !object.opened => Err(UrResult::INVALID_ARGUMENT),
        Known::Ours(object) if object.context != context.0 => Err(UrResult::INVALID_CONTEXT),
        Known::Ours(_) => release(at, memory),
        Known::Adapters => Err(UrResult::INVALID_ARGUMENT),
    }
}

/// Tries whether the driver exports physical memory.
pub(crate) fn can_be_shared(driver: &Driver, context: ZeHandle, device: ZeHandle) -> Result<(), UrResult> {
    let size = driver.least_physical(context, device)?;
    let handle = driver.make_physical(context, device, size)?;
    Native { context, handle, export: Mutex::new(None), import: None }.descriptor().map(drop)
}

/// The driver's object for what another process, or this one, exported.
fn fetch_native(sealed: &HandleData, context: ZeHandle, device: ZeHandle) -> Result<Arc<Native>, UrResult> {
    let producer = Process { pid: sealed.pid, started: sealed.started };
    let own = if producer == Process::this() {
        let look = |keeper: &Keeper| (keeper.native.upgrade(), keeper.descriptor.try_clone());
        let (native, descriptor) = ISSUED.find(sealed.serial, look).ok_or(UrResult::INVALID_VALUE)?;
        // Some drivers give an import of what is already here the same kernel object, which the first end of it would
        // take away from the other: so it stays one.
        if let Some(native) = native.filter(|native| native.context == context) {
            return Ok(native);
        }
        descriptor.map_err(|refusal| result::of_kernel(&refusal))?
    } else {
        producer.fetch(sealed.descriptor)?
    };
    // After a put, the number may stand for another file.
    if identity(&own)? != sealed.native {
        return Err(UrResult::INVALID_VALUE);
    }
    let number = fetch::duplicate(own.as_raw_fd()).map_err(|refusal| result::of_kernel(&refusal))?;
    let imported = driver().import_physical(context, device, sealed.size as usize, number.as_raw_fd());
    let handle = imported.map_err(result::of_import)?;
    // From here on the number is the driver's, if it wants it.
    let lent = SharedDescriptor { number: Some(std::os::fd::IntoRawFd::into_raw_fd(number)), own };
    Ok(Arc::new(Native { context, handle, export: Mutex::new(None), import: Some(lent) }))
}

/// What tells one file from another: device and inode.
fn identity(descriptor: &OwnedFd) -> Result<[u8; NATIVE_SIZE], UrResult> {
    // SAFETY: the descriptor is open for as long as it is borrowed, and nothing closes this second owner of it.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor.as_raw_fd()) });
    let data = file.metadata().map_err(|refusal| result::of_kernel(&refusal))?;
    let mut bytes = [0; NATIVE_SIZE];
    for (to, from) in bytes.iter_mut().zip([data.dev(), data.ino()].into_iter().flat_map(u64::to_le_bytes)) {
        *to = from;
    }
    Ok(bytes)
}

impl Native {
    /// A descriptor of the memory that is the caller's alone.
    fn descriptor(&self) -> Result<OwnedFd, UrResult> {
        let mut export = self.export.lock();
        let lent = match &mut *export {
            Some(lent) => lent,
            none => none.insert(self.ask()?),
        };
        lent.own.try_clone().map_err(|refusal| result::of_kernel(&refusal))
    }

    /// Asks the driver twice: one that answers with the same number keeps it, another one gave two away.
    fn ask(&self) -> Result<SharedDescriptor, UrResult> {
        let first = driver().export_physical(self.context, self.handle)?;
        let second = driver().export_physical(self.context, self.handle)?;
        if first == second {
            let own = fetch::duplicate(first).map_err(|refusal| result::of_kernel(&refusal))?;
            return Ok(SharedDescriptor { number: Some(first), own });
        }
        // SAFETY: the driver made both for us just now, and has told us of each once.
        let [own, _again] = unsafe { [OwnedFd::from_raw_fd(first), OwnedFd::from_raw_fd(second)] };
        Ok(SharedDescriptor { number: None, own })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        driver().end_physical(self.context, self.handle);
        drop(self.export.get_mut().take());
        drop(self.import.take());
    }
}

impl Drop for SharedDescriptor {
    /// After the driver's object has ended: a number that still stands for our file is nobody's any more.
    fn drop(&mut self) {
        if let Some(number) = self.number.filter(|number| fetch::same_file(*number, self.own.as_raw_fd())) {
            // SAFETY: it stands for the open file that `own` does, which only the ended object and we had.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}
