//! Memory: where it lies, what is allocated, and how another process gets at it.
//!
//! `mapping` holds address space, `segment` the shared-memory files behind it, `allocation` what an application sees,
//! `map` finds the allocation of a pointer, `alloc` and `ipc` are the entry points, `sealed` the bytes of an IPC handle,
//! `exports` counts the handles that are out.
//! Physical and virtual memory (`zePhysicalMem*`, `zeVirtualMem*`) will be `physical` and `reserved` beside them: a
//! physical memory is a segment of its own, a reservation an address range that mappings are put into.

pub(crate) mod alloc;
pub(crate) mod ipc;

mod allocation;
mod exports;
mod map;
mod mapping;
mod sealed;
mod segment;

pub(crate) use allocation::Allocation;
pub(crate) use map::find;

/// The page size of the device: the granularity of everything here.
pub(crate) const PAGE: usize = 4096;
