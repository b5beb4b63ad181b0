//! Virtual memory management: memory without an address (`cuMemCreate`), and addresses that show it.
//!
//! Memory lives until its handles are released and it is mapped nowhere, in any process.

use std::os::fd::{AsRawFd, IntoRawFd};
use std::{collections::BTreeMap, ffi::c_int, fs::OpenOptions, sync::Arc};

use parking_lot::Mutex;
use urscope_device::{Kind, PhysicalMemory, Reservation};

use crate::arguments::{In, Out};
use crate::context::{current_device, device, initialised};
use crate::exports::functions;
use crate::objects::Objects;
use crate::result::{Code, Outcome};

/// The size and the alignment of all memory here is a multiple of this, as on GPUs of today.
const GRANULARITY: usize = 2 << 20;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
pub(crate) const DESCRIPTOR: u32 = 1;

/// `CUmemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    /// `CU_MEM_LOCATION_TYPE_DEVICE` is 1.
    kind: u32,
    pub(crate) id: i32,
}

/// `CUmemAllocationProp`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    /// `CU_MEM_ALLOCATION_TYPE_PINNED` is 1.
    kind: u32,
    handle_types: u32,
    location: Location,
    windows: usize,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Access {
    location: Location,
    /// None 0, read 1, read and write 3.
    flags: u32,
}

/// Memory without an address.
pub(crate) struct Physical {
    memory: Arc<PhysicalMemory>,
    size: usize,
    properties: Properties,
}

impl Physical {
    /// Creates memory that can be exported.
    pub(crate) fn new(size: usize, ordinal: i32) -> Outcome<Self> {
        let kind = 1;
        let location = Location { kind, id: ordinal };
        Self::create(size, Properties { kind, handle_types: DESCRIPTOR, location, windows: 0, flags: [0; 8] })
    }

    fn create(size: usize, properties: Properties) -> Outcome<Self> {
        let memory = PhysicalMemory::make(size, Kind::Device, Some(device(properties.location.id)?), true)?;
        Ok(Self { memory: Arc::new(memory), size, properties })
    }

    /// A new descriptor of the memory, which the caller owns. As with the driver, each is of another open file.
    pub(crate) fn export(&self) -> Outcome<c_int> {
        let path = format!("/proc/self/fd/{}", self.memory.export()?.as_raw_fd());
        let opened = OpenOptions::new().read(true).write(true).open(path).map_err(|_| Code::OUT_OF_MEMORY)?;
        Ok(opened.into_raw_fd())
    }

    /// The memory behind a descriptor, which stays the caller's: `INVALID_VALUE` unless `accepts` says that its size in
    /// bytes is right.
    pub(crate) fn import(descriptor: c_int, accepts: impl Fn(usize) -> bool) -> Outcome<Self> {
        let device = current_device()?;
        let size =
            urscope_device::exported_size(descriptor).filter(|size| accepts(*size)).ok_or(Code::INVALID_VALUE)?;
        let memory = PhysicalMemory::import(descriptor, size, Kind::Device, Some(device));
        let memory = Arc::new(memory.map_err(|_| Code::INVALID_VALUE)?);
        let location = Location { kind: 1, id: crate::context::current()?.1.device };
        let properties = Properties { kind: 1, handle_types: DESCRIPTOR, location, windows: 0, flags: [0; 8] };
        Ok(Self { memory, size, properties })
    }
}

/// A handle of memory. Each create, import and retain is to be released once.
struct Owned {
    memory: Arc<Physical>,
    count: Mutex<u32>,
}

static HANDLES: Objects<Owned> = Objects::new();

/// A range of addresses that shows memory, by its first address.
#[derive(Clone)]
struct View {
    size: usize,
    memory: Arc<Physical>,
    is_accessible: bool,
}

static VIEWS: Mutex<BTreeMap<usize, View>> = Mutex::new(BTreeMap::new());

/// Whether all of these addresses show memory that may be accessed.
pub(crate) fn is_mapped(mut address: usize, end: usize) -> bool {
    let views = VIEWS.lock();
    loop {
        let Some((base, view)) = views.range(..=address).next_back() else { return false };
        if !view.is_accessible || address >= base + view.size {
            return false;
        }
        address = base + view.size;
        if address >= end {
            return true;
        }
    }
}

/// The range of the mapping that contains an address.
pub(crate) fn range(address: usize) -> Option<(usize, usize)> {
    view(address).map(|(base, view)| (base, view.size))
}

fn view(address: usize) -> Option<(usize, View)> {
    let views = VIEWS.lock();
    let (base, view) = views.range(..=address).next_back()?;
    (address - base < view.size).then(|| (*base, view.clone()))
}

/// The mappings of exactly this range: `INVALID_VALUE` unless there are such.
fn within(views: &BTreeMap<usize, View>, address: usize, size: usize) -> Outcome<Vec<usize>> {
    let found: Vec<_> = views.range(address..address.saturating_add(size)).collect();
    let covered: usize = found.iter().map(|(_, view)| view.size).sum();
    if covered != size || size == 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(found.into_iter().map(|(base, _)| *base).collect())
}

fn check_size(size: usize) -> Outcome {
    if size != 0 && size.is_multiple_of(GRANULARITY) { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

fn add(memory: Physical) -> u64 {
    HANDLES.add(Owned { memory: Arc::new(memory), count: Mutex::new(1) }) as u64
}

/// `INVALID_VALUE` if there is none.
fn get(handle: u64) -> Outcome<Arc<Owned>> {
    initialised()?;
    HANDLES.get(handle as usize).map_err(|_| Code::INVALID_VALUE)
}

functions! {
    10020 "cuMemGetAllocationGranularity" cuMemGetAllocationGranularity(
        granularity: Out<usize>, properties: In<Properties>, _option: u32,
    ) {
        device(properties.read()?.location.id)?;
        granularity.write(GRANULARITY)
    }
    10020 "cuMemCreate" cuMemCreate(handle: Out<u64>, size: usize, properties: In<Properties>, _flags: u64) {
        initialised()?;
        handle.check()?;
        let properties = properties.read()?;
        check_size(size)?;
        if properties.kind != 1 || properties.location.kind != 1 || properties.handle_types & !DESCRIPTOR != 0 {
            return Err(Code::INVALID_VALUE);
        }
        handle.write(add(Physical::create(size, properties)?))
    }
    10020 "cuMemRelease" cuMemRelease(handle: u64) {
        let owned = get(handle)?;
        let mut count = owned.count.lock();
        *count = count.checked_sub(1).ok_or(Code::INVALID_VALUE)?;
        if *count == 0 { HANDLES.remove(handle as usize).map(drop) } else { Ok(()) }
    }
    11000 "cuMemRetainAllocationHandle" cuMemRetainAllocationHandle(handle: Out<u64>, address: usize) {
        initialised()?;
        handle.check()?;
        let (_, view) = view(address).ok_or(Code::INVALID_VALUE)?;
        let known = HANDLES.all().into_iter().find(|(_, owned)| Arc::ptr_eq(&owned.memory, &view.memory));
        handle.write(match known {
            Some((known, owned)) => {
                *owned.count.lock() += 1;
                known as u64
            }
            None => HANDLES.add(Owned { memory: view.memory, count: Mutex::new(1) }) as u64,
        })
    }
    10020 "cuMemGetAllocationPropertiesFromHandle" cuMemGetAllocationPropertiesFromHandle(
        properties: Out<Properties>, handle: u64,
    ) {
        properties.write(get(handle)?.memory.properties)
    }
    10020 "cuMemAddressReserve" cuMemAddressReserve(
        address: Out<usize>, size: usize, _alignment: usize, wanted: usize, _flags: u64,
    ) {
        initialised()?;
        address.check()?;
        check_size(size)?;
        address.write(Reservation::reserve(wanted, size)?)
    }
    10020 "cuMemAddressFree" cuMemAddressFree(address: usize, size: usize) {
        initialised()?;
        if VIEWS.lock().range(address..address.saturating_add(size)).next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        Reservation::free(address, size)?;
        Ok(())
    }
    10020 "cuMemMap" cuMemMap(address: usize, size: usize, offset: usize, handle: u64, _flags: u64) {
        let memory = Arc::clone(&get(handle)?.memory);
        check_size(size)?;
        if offset != 0 || size > memory.size {
            return Err(Code::INVALID_VALUE);
        }
        Reservation::map(address, size, Arc::clone(&memory.memory), 0, urscope_device::Access::None)?;
        VIEWS.lock().insert(address, View { size, memory, is_accessible: false });
        Ok(())
    }
    10020 "cuMemUnmap" cuMemUnmap(address: usize, size: usize) {
        initialised()?;
        let mut views = VIEWS.lock();
        let found = within(&views, address, size)?;
        Reservation::unmap(address, size)?;
        views.retain(|base, _| !found.contains(base));
        Ok(())
    }
    10020 "cuMemSetAccess" cuMemSetAccess(address: usize, size: usize, access: In<Access>, count: usize) {
        initialised()?;
        let mut views = VIEWS.lock();
        let found = within(&views, address, size)?;
        for index in 0..count {
            let Access { location, flags } = access.element(index)?;
            if location.kind == 1 {
                device(location.id)?;
            }
            let access = match flags {
                0 => urscope_device::Access::None,
                1 => urscope_device::Access::ReadOnly,
                3 => urscope_device::Access::ReadWrite,
                _ => return Err(Code::INVALID_VALUE),
            };
            Reservation::set_access(address, size, access)?;
            for (_, view) in views.iter_mut().filter(|(base, _)| found.contains(base)) {
                view.is_accessible = flags != 0;
            }
        }
        Ok(())
    }
    10020 "cuMemExportToShareableHandle" cuMemExportToShareableHandle(
        shareable: Out<c_int>, handle: u64, kind: u32, flags: u64,
    ) {
        let owned = get(handle)?;
        shareable.check()?;
        if kind != DESCRIPTOR || flags != 0 || owned.memory.properties.handle_types & DESCRIPTOR == 0 {
            return Err(Code::INVALID_VALUE);
        }
        shareable.write(owned.memory.export()?)
    }
    10020 "cuMemImportFromShareableHandle" cuMemImportFromShareableHandle(handle: Out<u64>, shareable: usize, kind: u32) {
        initialised()?;
        handle.check()?;
        if kind != DESCRIPTOR {
            return Err(Code::INVALID_VALUE);
        }
        handle.write(add(Physical::import(shareable as c_int, |size| size.is_multiple_of(GRANULARITY))?))
    }
}
