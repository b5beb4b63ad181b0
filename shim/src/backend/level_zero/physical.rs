//! Physical memory: objects of this backend if it is to be shared, otherwise the adapter's.
//!
//! An object begins with the adapter's dispatch table, as every handle must. The adapter does not know it: every call
//! about it comes to the functions here. `ze_api.h` does not specify who owns the descriptors that a driver exports
//! and imports ([`DriverMemory`]), so none may be closed before it is clear that nobody else uses it.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use urscope_schema::api::role::{
    Context, Data, DataSize, Desc, Device, Flags, Offset, OpenedData, OutData, OutDataSize, OutObject, OutValue,
    PhysicalMem, Pointer, Property, Size,
};
use urscope_schema::api::{ResultCode, unified_runtime::constants};
use zerocopy::IntoBytes as _;

use super::driver::{Driver, ZeHandle, driver};
use super::fetch::{self, Process};
use super::handle_data::{HandleData, NATIVE_SIZE};
use super::issued_handles::{Contents, IssuedHandles};
use super::{LevelZero, opening, result};
use crate::backend::{Family, adapter};
use crate::raw::args::Arg;
use crate::raw::args::caller::{Query, receive};
use crate::raw::{
    files::plain_file, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex,
};

/// `ur_physical_mem_properties_t`
#[repr(C)]
#[derive(zerocopy::IntoBytes, zerocopy::Immutable)]
struct Properties {
    stype: u32,
    padding: u32,
    next: usize,
    flags: u32,
    padding_at_end: u32,
}

impl Properties {
    /// The properties of an object.
    const SHARED: Self = Self {
        stype: constants::UR_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES,
        padding: 0,
        next: 0,
        flags: constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC,
        padding_at_end: 0,
    };
}

/// The driver's object, which ends with the last [`Object`] for it.
struct DriverMemory {
    context: ZeHandle,
    handle: ZeHandle,
    export: Mutex<Option<SharedDescriptor>>,
    /// The descriptor that it was imported from.
    import: Option<SharedDescriptor>,
}

/// A descriptor that the driver may also use, and a duplicate that only urscope uses.
struct SharedDescriptor {
    number: Option<RawFd>,
    own: OwnedFd,
}

/// An object whose address is a physical memory handle.
#[repr(C)]
struct Object {
    /// The adapter's dispatch table: the first word of every handle.
    table: usize,
    native: Arc<DriverMemory>,
    context: usize,
    device: usize,
    size: usize,
    opened: bool,
}

#[derive(Clone)]
enum PhysicalMemory {
    Own(Arc<Object>),
    OfAdapter,
}

/// All physical memory by handle, with its reference count.
static OBJECTS: ForkReset<Mutex<HashMap<usize, (PhysicalMemory, u32)>>> = ForkReset::new(Mutex::default);

/// The resource of handle data: the descriptor that consumers fetch, and the driver's object.
struct ExportedObject {
    descriptor: OwnedFd,
    native: Weak<DriverMemory>,
}

static ISSUED_HANDLES: IssuedHandles<ExportedObject> = IssuedHandles::new(Family::PhysicalMem);

/// Forgets the parent's objects.
pub(crate) fn after_fork_in_child() {
    OBJECTS.reset(Mutex::default());
    ISSUED_HANDLES.after_fork_in_child();
}

fn find(memory: Arg<PhysicalMem>) -> Result<PhysicalMemory, ResultCode> {
    result::not_null(memory)?;
    OBJECTS.get().lock().get(&memory.get().0).map(|(known, _)| known.clone()).ok_or(ResultCode::INVALID_ARGUMENT)
}

fn add(object: Object, out: Arg<OutObject>) {
    let object = Arc::new(object);
    let handle = Arc::as_ptr(&object).expose_provenance();
    OBJECTS.get().lock().insert(handle, (PhysicalMemory::Own(object), 1));
    out.write(handle);
}

/// `urPhysicalMemCreate`
pub(crate) fn create(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    size: Arg<Size>,
    properties: Arg<Desc>,
    out: Arg<OutObject>,
) -> Result<(), ResultCode> {
    let flags = opening::creation_flags(context, device, properties, out, !constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC)?;
    if flags & constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC == 0 {
        let make = adapter::urPhysicalMemCreate(at.via);
        let made = receive::<PhysicalMem>(|out| make(context, device, size, properties, out));
        let made = made.map_err(result::of_size)?.ok_or(ResultCode::UNKNOWN)?.get().0;
        OBJECTS.get().lock().insert(made, (PhysicalMemory::OfAdapter, 1));
        out.write(made);
        return Ok(());
    }
    let ze_context = at.context(context)?;
    let ze_device = at.device(device)?;
    let handle = driver().make_physical(ze_context, ze_device, size.get().0).map_err(result::of_size)?;
    let native = Arc::new(DriverMemory { context: ze_context, handle, export: Mutex::new(None), import: None });
    add(object(context, device, size.get().0, native, false)?, out);
    Ok(())
}

fn object(
    context: Arg<Context>,
    device: Arg<Device>,
    size: usize,
    native: Arc<DriverMemory>,
    opened: bool,
) -> Result<Object, ResultCode> {
    let table = context.handle().ok_or(ResultCode::INVALID_NULL_HANDLE)?.dispatch_table().expose_provenance();
    Ok(Object { table, native, context: context.get().0, device: device.get().0, size, opened })
}

/// `urPhysicalMemRetain`
pub(crate) fn retain(at: LevelZero, memory: Arg<PhysicalMem>) -> Result<(), ResultCode> {
    if let PhysicalMemory::OfAdapter = find(memory)? {
        result::done(adapter::urPhysicalMemRetain(at.via)(memory))?;
    }
    if let Some((_, references)) = OBJECTS.get().lock().get_mut(&memory.get().0) {
        *references += 1;
    }
    Ok(())
}

/// `urPhysicalMemRelease`
pub(crate) fn release(at: LevelZero, memory: Arg<PhysicalMem>) -> Result<(), ResultCode> {
    result::not_null(memory)?;
    // Removed before it is released, because its address may be reused afterwards. The object ends after the lock.
    let (known, _last) = {
        let mut all = OBJECTS.get().lock();
        let (known, references) = all.get_mut(&memory.get().0).ok_or(ResultCode::INVALID_ARGUMENT)?;
        *references -= 1;
        let known = known.clone();
        let ended = *references == 0;
        (known, if ended { all.remove(&memory.get().0) } else { None })
    };
    match known {
        PhysicalMemory::Own(_) => Ok(()),
        PhysicalMemory::OfAdapter => result::done(adapter::urPhysicalMemRelease(at.via)(memory)),
    }
}

/// `urPhysicalMemGetInfo`
pub(crate) fn get_info(
    at: LevelZero,
    memory: Arg<PhysicalMem>,
    property: Arg<Property>,
    query: Query<OutValue>,
) -> Result<(), ResultCode> {
    let PhysicalMemory::Own(object) = find(memory)? else {
        let ask = adapter::urPhysicalMemGetInfo(at.via);
        return result::done(ask(memory, property, query.size, query.value, query.size_ret));
    };
    match property.get().0 {
        constants::UR_PHYSICAL_MEM_INFO_CONTEXT => query.answer(&object.context.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_DEVICE => query.answer(&object.device.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_SIZE => query.answer(&object.size.to_ne_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_PROPERTIES => query.answer(Properties::SHARED.as_bytes()),
        constants::UR_PHYSICAL_MEM_INFO_REFERENCE_COUNT => {
            let references = OBJECTS.get().lock().get(&memory.get().0).map_or(0, |(_, references)| *references);
            query.answer(&references.to_ne_bytes())
        }
        _ => Err(ResultCode::UNSUPPORTED_ENUMERATION),
    }
}

/// `urVirtualMemMap`
pub(crate) fn map(
    at: LevelZero,
    context: Arg<Context>,
    pointer: Arg<Pointer>,
    size: Arg<Size>,
    memory: Arg<PhysicalMem>,
    offset: Arg<Offset>,
    flags: Arg<Flags>,
) -> Result<(), ResultCode> {
    let Ok(PhysicalMemory::Own(object)) = find(memory) else {
        return result::done(adapter::urVirtualMemMap(at.via)(context, pointer, size, memory, offset, flags));
    };
    let ze_context = at.context(context)?;
    let size = size.get().0;
    let offset = offset.get().0;
    if offset.checked_add(size).is_none_or(|end| end > object.size) {
        return Err(ResultCode::INVALID_VALUE);
    }
    // `ze_memory_access_attribute_t`
    let access = match flags.get().0 {
        flags if flags & constants::UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE != 0 => 1,
        flags if flags & constants::UR_VIRTUAL_MEM_ACCESS_FLAG_READ_ONLY != 0 => 2,
        _ => 0,
    };
    driver().map(ze_context, pointer, size, object.native.handle, offset, access)
}

/// `urIPCGetPhysMemHandleExp`
pub(crate) fn get(
    context: Arg<Context>,
    memory: Arg<PhysicalMem>,
    data: Arg<OutData>,
    size: Arg<OutDataSize>,
) -> Result<(), ResultCode> {
    result::not_null(context)?;
    result::not_null(data)?;
    result::not_null(size)?;
    let PhysicalMemory::Own(object) = find(memory)? else { return Err(ResultCode::INVALID_ARGUMENT) };
    ISSUED_HANDLES.answer_get(data, size, || {
        let descriptor = object.native.descriptor()?;
        let contents = Contents {
            size: object.size as u64,
            offset: 0,
            descriptor: descriptor.as_raw_fd(),
            native: identity(&descriptor)?,
        };
        Ok((contents, ExportedObject { descriptor, native: Arc::downgrade(&object.native) }))
    })
}

/// `urIPCPutPhysMemHandleExp`
pub(crate) fn put(context: Arg<Context>, data: Arg<Data>) -> Result<(), ResultCode> {
    result::not_null(context)?;
    result::not_null(data)?;
    ISSUED_HANDLES.take(data.get().0).map(|resource| resource.map_or((), |resource| drop(resource.descriptor)))
}

/// `urIPCOpenPhysMemHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    out: Arg<OutObject>,
) -> Result<(), ResultCode> {
    let (ze_context, ze_device, handle_data) =
        opening::decode_opened(at, context, data, size, out, Family::PhysicalMem, || at.device_in(context, device))?;
    let native = fetch_native(&handle_data, ze_context, ze_device)?;
    add(object(context, device, handle_data.size as usize, native, true)?, out);
    Ok(())
}

/// `urIPCClosePhysMemHandleExp`
pub(crate) fn close(at: LevelZero, context: Arg<Context>, memory: Arg<PhysicalMem>) -> Result<(), ResultCode> {
    result::not_null(context)?;
    match find(memory)? {
        PhysicalMemory::Own(object) if !object.opened => Err(ResultCode::INVALID_ARGUMENT),
        PhysicalMemory::Own(object) if object.context != context.get().0 => Err(ResultCode::INVALID_CONTEXT),
        PhysicalMemory::Own(_) => release(at, memory),
        PhysicalMemory::OfAdapter => Err(ResultCode::INVALID_ARGUMENT),
    }
}

/// Succeeds if the driver can export physical memory.
pub(crate) fn can_be_shared(driver: &Driver, context: ZeHandle, device: ZeHandle) -> Result<(), ResultCode> {
    let size = driver.least_physical(context, device)?;
    let handle = driver.make_physical(context, device, size)?;
    DriverMemory { context, handle, export: Mutex::new(None), import: None }.descriptor().map(drop)
}

/// The driver's object for exported memory of another process or of this one.
fn fetch_native(
    handle_data: &HandleData,
    context: ZeHandle,
    device: ZeHandle,
) -> Result<Arc<DriverMemory>, ResultCode> {
    let producer = Process::producer_of(handle_data);
    let own = if producer == Process::this() {
        let resources = |resource: &ExportedObject| (resource.native.upgrade(), resource.descriptor.try_clone());
        let (native, descriptor) =
            ISSUED_HANDLES.find(handle_data.serial, resources).ok_or(ResultCode::INVALID_VALUE)?;
        // Some drivers use one kernel object for memory of this process and its import, and would end both objects with
        // the first. So there is only one object.
        if let Some(native) = native.filter(|native| native.context == context) {
            return Ok(native);
        }
        descriptor.map_err(|refusal| result::of_kernel(&refusal))?
    } else {
        producer.fetch(handle_data.descriptor)?
    };
    // After a put, the descriptor may refer to another file.
    if identity(&own)? != handle_data.native {
        return Err(ResultCode::INVALID_VALUE);
    }
    let number = fetch::duplicate(own.as_raw_fd()).map_err(|refusal| result::of_kernel(&refusal))?;
    let imported = driver().import_physical(context, device, handle_data.size as usize, number.as_fd());
    let handle = imported.map_err(result::of_import)?;
    // From here on the driver may own the number.
    let descriptors = SharedDescriptor { number: Some(std::os::fd::IntoRawFd::into_raw_fd(number)), own };
    Ok(Arc::new(DriverMemory { context, handle, export: Mutex::new(None), import: Some(descriptors) }))
}

/// The identity of a file: device and inode.
fn identity(descriptor: &OwnedFd) -> Result<[u8; NATIVE_SIZE], ResultCode> {
    let data = plain_file::status_of(descriptor).map_err(|refusal| result::of_kernel(&refusal))?;
    let mut bytes = [0; NATIVE_SIZE];
    for (to, from) in bytes.iter_mut().zip([data.st_dev, data.st_ino].into_iter().flat_map(u64::to_le_bytes)) {
        *to = from;
    }
    Ok(bytes)
}

impl DriverMemory {
    /// A new descriptor of the memory.
    fn descriptor(&self) -> Result<OwnedFd, ResultCode> {
        let mut export = self.export.lock();
        let descriptors = match &mut *export {
            Some(descriptors) => descriptors,
            none => none.insert(self.export()?),
        };
        descriptors.own.try_clone().map_err(|refusal| result::of_kernel(&refusal))
    }

    /// Asks the driver twice. If it returns the same descriptor, the driver owns it; otherwise the caller owns both.
    fn export(&self) -> Result<SharedDescriptor, ResultCode> {
        let first = driver().export_physical(self.context, self.handle)?;
        let second = driver().export_physical(self.context, self.handle)?;
        if first == second {
            let own = fetch::duplicate(first).map_err(|refusal| result::of_kernel(&refusal))?;
            return Ok(SharedDescriptor { number: Some(first), own });
        }
        // SAFETY: the driver has just made both for this call, each once.
        let [own, _second] = unsafe { [OwnedFd::from_raw_fd(first), OwnedFd::from_raw_fd(second)] };
        Ok(SharedDescriptor { number: None, own })
    }
}

impl Drop for DriverMemory {
    fn drop(&mut self) {
        driver().end_physical(self.context, self.handle);
        drop(self.export.get_mut().take());
        drop(self.import.take());
    }
}

impl Drop for SharedDescriptor {
    /// After the driver's object has ended, nobody uses a descriptor that still refers to the file.
    fn drop(&mut self) {
        if let Some(number) = self.number.filter(|number| fetch::same_file(*number, self.own.as_raw_fd())) {
            // SAFETY: it refers to the same open file as `own`, which only the ended object and urscope used.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}
