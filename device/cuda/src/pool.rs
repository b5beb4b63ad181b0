//! Memory pools, and allocations in the order of a stream.
//!
//! A pool that can be exported has a page of memory that is, and its descriptor stands for the pool. Memory is
//! allocated at once; freed memory stays for work that was submitted before, and in its pool if another process may
//! have it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{collections::BTreeMap, ffi::c_int};

use parking_lot::Mutex;
use urscope_device::{Allocation, layout::IpcHandle};

use crate::arguments::{In, Out};
use crate::context::{current, current_device, device, initialised};
use crate::exports::functions;
use crate::memory::{self, Kind};
use crate::objects::Objects;
use crate::physical::{Access, DESCRIPTOR, Location, Physical};
use crate::result::{Code, Outcome};
use crate::stream;

/// The size of the page of a pool, in bytes. `cuMemCreate` makes none of this size.
const PAGE: usize = 4096;

/// `CUmemPoolProps`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    windows: usize,
    largest: usize,
    usage: u16,
    reserved: [u8; 54],
}

struct Pool {
    /// Of a pool that can be exported, or that was imported.
    page: Option<Physical>,
    is_imported: bool,
    /// Whether the pool was exported: before that, the driver exports no pointer of it.
    is_exported: AtomicBool,
}

impl Pool {
    const fn new(page: Option<Physical>, is_imported: bool) -> Self {
        Self { page, is_imported, is_exported: AtomicBool::new(false) }
    }
}

static POOLS: Objects<Pool> = Objects::new();

/// The default pools of the devices, which other processes cannot get.
static DEFAULT: Mutex<BTreeMap<i32, usize>> = Mutex::new(BTreeMap::new());

fn default_pool(ordinal: i32) -> Outcome<usize> {
    device(ordinal)?;
    let add = || POOLS.add(Pool::new(None, false));
    Ok(*DEFAULT.lock().entry(ordinal).or_insert_with(add))
}

fn allocate(memory: Out<usize>, size: usize, pool: usize, stream: usize) -> Outcome {
    stream::find(stream)?;
    memory.check()?;
    let found = get(pool)?;
    if found.is_imported {
        return Err(Code::INVALID_VALUE);
    }
    memory.write(memory::allocate(Kind::Pool { shared: found.page.is_some().then_some(pool) }, size)?)
}

/// `INVALID_VALUE` if there is none.
fn get(pool: usize) -> Outcome<std::sync::Arc<Pool>> {
    initialised()?;
    POOLS.get(pool).map_err(|_| Code::INVALID_VALUE)
}

functions! {
    11020 "cuDeviceGetDefaultMemPool" cuDeviceGetDefaultMemPool(pool: Out<usize>, ordinal: i32) {
        pool.write(default_pool(ordinal)?)
    }
    11020 "cuDeviceGetMemPool" cuDeviceGetMemPool(pool: Out<usize>, ordinal: i32) {
        pool.write(default_pool(ordinal)?)
    }
    11020 "cuMemPoolCreate" cuMemPoolCreate(pool: Out<usize>, properties: In<Properties>) {
        initialised()?;
        pool.check()?;
        let properties = properties.read()?;
        if properties.kind != 1 || properties.handle_types & !DESCRIPTOR != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let exported = properties.handle_types == DESCRIPTOR;
        let page = if exported { Some(Physical::new(PAGE, properties.location.id)?) } else { None };
        pool.write(POOLS.add(Pool::new(page, false)))
    }
    11020 "cuMemPoolDestroy" cuMemPoolDestroy(pool: usize) {
        initialised()?;
        if DEFAULT.lock().values().any(|default| *default == pool) {
            return Err(Code::INVALID_VALUE);
        }
        POOLS.remove(pool).map_err(|_| Code::INVALID_VALUE)?;
        memory::end_freed(pool)
    }
    11020 "cuMemPoolTrimTo" cuMemPoolTrimTo(pool: usize, _kept: usize) {
        get(pool).map(drop)
    }
    11020 "cuMemPoolSetAttribute" cuMemPoolSetAttribute(pool: usize, _attribute: u32, _value: usize) {
        get(pool).map(drop)
    }
    11020 "cuMemPoolSetAccess" cuMemPoolSetAccess(pool: usize, _access: In<Access>, _count: usize) {
        get(pool).map(drop)
    }
    11020 "cuMemAllocAsync" cuMemAllocAsync(memory: Out<usize>, size: usize, stream: usize) / cuMemAllocAsync_ptsz {
        allocate(memory, size, default_pool(current()?.1.device)?, stream)
    }
    11020 "cuMemAllocFromPoolAsync" cuMemAllocFromPoolAsync(
        memory: Out<usize>, size: usize, pool: usize, stream: usize,
    ) / cuMemAllocFromPoolAsync_ptsz {
        allocate(memory, size, pool, stream)
    }
    11020 "cuMemFreeAsync" cuMemFreeAsync(memory: usize, stream: usize) / cuMemFreeAsync_ptsz {
        stream::find(stream)?;
        memory::free(memory, |kind| matches!(kind, Kind::Device | Kind::Pool { .. } | Kind::Imported(_)))
    }
    11020 "cuMemPoolExportToShareableHandle" cuMemPoolExportToShareableHandle(
        shareable: Out<c_int>, pool: usize, kind: u32, flags: u64,
    ) {
        let pool = get(pool)?;
        shareable.check()?;
        let page = pool.page.as_ref().filter(|_| kind == DESCRIPTOR && flags == 0 && !pool.is_imported);
        shareable.write(page.ok_or(Code::INVALID_VALUE)?.export()?)?;
        pool.is_exported.store(true, Ordering::Relaxed);
        Ok(())
    }
    11020 "cuMemPoolImportFromShareableHandle" cuMemPoolImportFromShareableHandle(
        pool: Out<usize>, shareable: usize, kind: u32, _flags: u64,
    ) {
        initialised()?;
        pool.check()?;
        if kind != DESCRIPTOR {
            return Err(Code::INVALID_VALUE);
        }
        let page = Physical::import(shareable as c_int, |size| size == PAGE)?;
        pool.write(POOLS.add(Pool::new(Some(page), true)))
    }
    11020 "cuMemPoolExportPointer" cuMemPoolExportPointer(data: Out<IpcHandle>, address: usize) {
        initialised()?;
        data.check()?;
        let is_exported = |pool| get(pool).is_ok_and(|pool| pool.is_exported.load(Ordering::Relaxed));
        let is_of_exported = |kind| matches!(kind, Kind::Pool { shared: Some(pool) } if is_exported(pool));
        let block = memory::find(address).filter(|block| is_of_exported(block.kind));
        let base = block.ok_or(Code::INVALID_VALUE)?.base;
        let bytes = Allocation::export(base)?;
        memory::change(base, |block| {
            block.has_handle = true;
            Ok(true)
        })?;
        data.write(bytes)
    }
    11020 "cuMemPoolImportPointer" cuMemPoolImportPointer(memory: Out<usize>, pool: usize, data: In<IpcHandle>) {
        let pool = get(pool)?;
        memory.check()?;
        let data = data.read()?;
        // As with the driver, a second import is the same memory, and the first free ends it.
        if let Some(base) = memory::imported(&data.data) {
            return memory.write(base);
        }
        let (_, size) = urscope_device::named(&data.data).filter(|_| pool.is_imported).ok_or(Code::INVALID_VALUE)?;
        let base = Allocation::open(current_device()?, &data)?;
        memory::add(base, size, Kind::Imported(data.data))?;
        memory.write(base)
    }
}
