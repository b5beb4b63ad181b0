//! Memory with an address: allocated, opened from another process, or mapped.
//!
//! The driver uses the addresses of freed memory again, for memory of the same kind and size. A handle of the freed
//! memory opens what is there now, once that has a handle, too. So memory that had a handle is kept when it is freed,
//! for the next allocation of its size. With `CUDA_SOFT_REUSE=off` it is not. Memory of a pool that had a handle stays
//! in its pool.

use std::collections::BTreeMap;
use std::{env, sync::LazyLock};

use parking_lot::Mutex;
use urscope_device::{Allocation, layout::IpcHandle};

use crate::arguments::Out;
use crate::context::{current, current_device, device};
use crate::exports::functions;
use crate::result::{Code, Outcome};
use crate::{ipc, physical, stream};

/// The rows of memory with a pitch begin at multiples of this, in bytes.
const PITCH: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Managed,
    Host,
    /// Of a pool: which, if other processes may get it.
    Pool {
        shared: Option<usize>,
    },
    /// Of another process, opened as often as counted. The identity is that of its pages in its process.
    Opened {
        identity: (u64, u64),
        count: u32,
    },
    /// Of a pool of another process, imported by these bytes.
    Imported([u8; 64]),
}

#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub base: usize,
    pub size: usize,
    pub context: usize,
    /// The ordinal of its device.
    pub device: i32,
    pub kind: Kind,
    /// Of memory of this process: the handle of the software device, if memory at this address has had one; whether
    /// this memory has; and the number of this memory at its address.
    pub handle: Option<IpcHandle>,
    pub has_handle: bool,
    pub generation: u32,
}

/// The live blocks by address.
static LIVE: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

/// Freed memory that is kept.
static FREED: Mutex<Vec<Block>> = Mutex::new(Vec::new());

static KEEPS_FREED: LazyLock<bool> = LazyLock::new(|| env::var_os("CUDA_SOFT_REUSE").is_none_or(|text| text != "off"));

/// The block that contains an address.
pub(crate) fn find(address: usize) -> Option<Block> {
    let live = LIVE.lock();
    let (_, block) = live.range(..=address).next_back()?;
    (address - block.base < block.size).then_some(*block)
}

/// Memory of the program that it has registered, by its address: its size.
static REGISTERED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Whether an address is one of memory that the driver knows nothing of.
pub(crate) fn is_pageable(address: usize) -> bool {
    let is_registered = || {
        let registered = REGISTERED.lock();
        registered.range(..=address).next_back().is_some_and(|(base, size)| address - base < *size)
    };
    find(address).is_none() && !physical::is_mapped(address, address + 1) && !is_registered()
}

/// The live blocks.
pub(crate) fn all() -> Vec<Block> {
    LIVE.lock().values().copied().collect()
}

/// `INVALID_VALUE` unless all of these bytes are in one block or in mapped memory.
pub(crate) fn check(address: usize, size: usize) -> Outcome {
    let end = address.checked_add(size).ok_or(Code::INVALID_VALUE)?;
    let in_block = find(address).is_some_and(|block| end <= block.base + block.size);
    if in_block || physical::is_mapped(address, end) { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// Changes the block that begins at an address: `INVALID_VALUE` if there is none. It ends if `change` returns false.
pub(crate) fn change(base: usize, change: impl FnOnce(&mut Block) -> Outcome<bool>) -> Outcome<Block> {
    let mut live = LIVE.lock();
    let block = live.get_mut(&base).ok_or(Code::INVALID_VALUE)?;
    let stays = change(block)?;
    let block = *block;
    if !stays {
        live.remove(&base);
    }
    Ok(block)
}

/// Adds a block of the thread's context.
pub(crate) fn add(base: usize, size: usize, kind: Kind) -> Outcome {
    let (context, of) = current()?;
    let block = Block { base, size, context, device: of.device, kind, handle: None, has_handle: false, generation: 0 };
    LIVE.lock().insert(base, block);
    Ok(())
}

/// The address of memory that was imported by these bytes, and not freed.
pub(crate) fn imported(data: &[u8; 64]) -> Option<usize> {
    LIVE.lock().values().find(|block| block.kind == Kind::Imported(*data)).map(|block| block.base)
}

/// Allocates memory for the thread's context, and returns its address.
pub(crate) fn allocate(kind: Kind, size: usize) -> Outcome<usize> {
    let (context, of) = current()?;
    if size == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if matches!(kind, Kind::Device | Kind::Pool { shared: Some(_) }) {
        let mut freed = FREED.lock();
        let again = freed.iter().rposition(|old| (old.size, old.device, old.kind) == (size, of.device, kind));
        if let Some(old) = again.map(|at| freed.remove(at)) {
            if let Some(handle) = &old.handle {
                ipc::mark(handle, true);
            }
            // Memory of a pool keeps its handle.
            let has_handle = kind != Kind::Device;
            let block = Block { context, has_handle, generation: old.generation + 1, ..old };
            LIVE.lock().insert(old.base, block);
            return Ok(old.base);
        }
    }
    let base = make(kind, size, of.device).or_else(|_| {
        let freed = std::mem::take(&mut *FREED.lock());
        freed.into_iter().try_for_each(|block| Allocation::free(block.base))?;
        make(kind, size, of.device)
    })?;
    add(base, size, kind)?;
    Ok(base)
}

/// Makes new memory on a device, or of the host.
fn make(kind: Kind, size: usize, ordinal: i32) -> Outcome<usize> {
    let device = device(ordinal)?;
    let (kind, device) = match kind {
        Kind::Host => (urscope_device::Kind::Host, None),
        Kind::Managed => (urscope_device::Kind::Shared, Some(device)),
        _ => (urscope_device::Kind::Device, Some(device)),
    };
    Allocation::allocate(kind, device, size).map_err(|_| Code::OUT_OF_MEMORY)
}

/// Frees the memory that begins at an address: `INVALID_VALUE` if there is none or `accepts` refuses it.
pub(crate) fn free(base: usize, accepts: impl FnOnce(Kind) -> bool) -> Outcome {
    let block = change(base, |block| if accepts(block.kind) { Ok(false) } else { Err(Code::INVALID_VALUE) })?;
    end(block)
}

/// Closes memory that was opened, and ends it with the last close: `INVALID_VALUE` for any other address.
pub(crate) fn close(base: usize) -> Outcome {
    let block = change(base, |block| match &mut block.kind {
        Kind::Opened { count, .. } => {
            *count -= 1;
            Ok(*count > 0)
        }
        _ => Err(Code::INVALID_VALUE),
    })?;
    if matches!(block.kind, Kind::Opened { count: 0, .. }) { end(block) } else { Ok(()) }
}

/// Ends a block that is no longer live. Work that was submitted keeps its pages.
fn end(block: Block) -> Outcome {
    match (block.kind, block.handle) {
        (Kind::Opened { .. } | Kind::Imported(_), _) => Allocation::close(block.base)?,
        (Kind::Device, Some(handle)) if *KEEPS_FREED => {
            // What was submitted must not write to the memory that comes next.
            stream::synchronise_all(block.context);
            if block.has_handle {
                Allocation::put(&handle);
            }
            ipc::mark(&handle, false);
            FREED.lock().push(block);
        }
        (Kind::Pool { .. }, _) if block.has_handle => {
            // As with the driver, its pointer may be imported even now.
            FREED.lock().push(block);
        }
        _ => Allocation::free(block.base)?,
    }
    Ok(())
}

/// Ends the freed memory of a pool.
pub(crate) fn end_freed(pool: usize) -> Outcome {
    let of_pool = |block: &mut Block| block.kind == Kind::Pool { shared: Some(pool) };
    let freed: Vec<_> = FREED.lock().extract_if(.., of_pool).collect();
    freed.into_iter().try_for_each(|block| Allocation::free(block.base))?;
    Ok(())
}

/// Ends the memory of a context.
pub(crate) fn end_all(context: usize) {
    for block in
        LIVE.lock().extract_if(.., |_, block| block.context == context).map(|(_, block)| block).collect::<Vec<_>>()
    {
        // It cannot fail for a block that was live.
        let _ = end(block);
    }
}

/// What `cuMemFree` frees.
fn is_freed(kind: Kind) -> bool {
    !matches!(kind, Kind::Opened { .. } | Kind::Host)
}

fn allocate_to(memory: Out<usize>, kind: Kind, size: usize) -> Outcome {
    current()?;
    memory.check()?;
    memory.write(allocate(kind, size)?)
}

fn free_host(memory: usize) -> Outcome {
    current()?;
    free(memory, |kind| kind == Kind::Host)
}

functions! {
    3020 "cuMemAlloc" cuMemAlloc_v2(memory: Out<usize>, size: usize) {
        allocate_to(memory, Kind::Device, size)
    }
    3020 "cuMemAllocPitch" cuMemAllocPitch_v2(
        memory: Out<usize>, pitch: Out<usize>, width: usize, height: usize, _element: u32,
    ) {
        pitch.check()?;
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::OUT_OF_MEMORY)?;
        allocate_to(memory, Kind::Device, row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?)?;
        pitch.write(row)
    }
    6000 "cuMemAllocManaged" cuMemAllocManaged(memory: Out<usize>, size: usize, _flags: u32) {
        allocate_to(memory, Kind::Managed, size)
    }
    3020 "cuMemAllocHost" cuMemAllocHost_v2(memory: Out<usize>, size: usize) {
        allocate_to(memory, Kind::Host, size)
    }
    2020 "cuMemHostAlloc" cuMemHostAlloc(memory: Out<usize>, size: usize, _flags: u32) {
        allocate_to(memory, Kind::Host, size)
    }
    3020 "cuMemHostGetDevicePointer" cuMemHostGetDevicePointer_v2(device: Out<usize>, memory: usize, _flags: u32) {
        current()?;
        device.write(memory)
    }
    6050 "cuMemHostRegister" cuMemHostRegister_v2(memory: usize, size: usize, _flags: u32) {
        current()?;
        REGISTERED.lock().insert(memory, size);
        Ok(())
    }
    4000 "cuMemHostUnregister" cuMemHostUnregister(memory: usize) {
        current()?;
        REGISTERED.lock().remove(&memory);
        Ok(())
    }
    3020 "cuMemFree" cuMemFree_v2(memory: usize) {
        current()?;
        if memory == 0 { Ok(()) } else { free(memory, is_freed) }
    }
    2000 "cuMemFreeHost" cuMemFreeHost(memory: usize) {
        free_host(memory)
    }
    3020 "cuMemGetAddressRange" cuMemGetAddressRange_v2(base: Out<usize>, size: Out<usize>, address: usize) {
        current_device()?;
        let block = find(address).map(|block| (block.base, block.size)).or_else(|| physical::range(address));
        let (found, length) = block.ok_or(Code::INVALID_VALUE)?;
        base.write_optional(found);
        size.write_optional(length);
        Ok(())
    }
}
