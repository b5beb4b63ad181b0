//! The adapters of this process: table getters, dispatch table, kind and generation.
//!
//! Entry points fill the registry; entry points and backends read it. It calls an adapter only through its getters
//! and `urAdapterGetInfo`.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::{ffi::c_void, ptr::null_mut, slice};

use urscope_schema::api::unified_runtime::constants::{
    UR_ADAPTER_INFO_BACKEND, UR_ADAPTER_INFO_VERSION, UR_BACKEND_LEVEL_ZERO,
};
use urscope_schema::api::{ResultCode, Table, unified_runtime::VERSION};

use crate::raw::args::AdapterHandle;

/// The most adapters in a process. The loader has five kinds.
pub const ADAPTERS: usize = 8;

/// More slots than any table has in any release.
const SLOT_LIMIT: usize = 64;

/// The value of a slot that the adapter did not fill; no address of a function.
const UNFILLED: *mut c_void = std::ptr::without_provenance_mut(0x5a5a_5a5a_5a5a_5a5a);

/// `pfnGetInfo` in `ur_adapter_dditable_t`.
const ADAPTER_GET_INFO: usize = 4;

/// A `ur_pfnGet<Table>ProcAddrTable_t`: fills the table for an API version.
pub type Getter = unsafe extern "C" fn(u32, *mut *mut c_void) -> ResultCode;

struct Adapter {
    getters: [AtomicPtr<c_void>; Table::ALL.len()],
    /// The table that the first word of its handles points at.
    dispatch_table: AtomicPtr<c_void>,
    level_zero: AtomicBool,
    generation: AtomicU32,
}

static REGISTRY: [Adapter; ADAPTERS] = [const {
    Adapter {
        getters: [const { AtomicPtr::new(null_mut()) }; Table::ALL.len()],
        dispatch_table: AtomicPtr::new(null_mut()),
        level_zero: AtomicBool::new(false),
        generation: AtomicU32::new(0),
    }
}; ADAPTERS];

/// Stores the adapter's getter of a table; false if there is no room for it.
///
/// # Safety
///
/// `getter` is what the adapter exports under the getter's name.
pub unsafe fn store_getter(via: usize, table: Table, getter: *mut c_void) -> bool {
    let slot = REGISTRY.get(via).and_then(|known| known.getters.get(table as usize));
    slot.inspect(|slot| slot.store(getter, Ordering::Release)).is_some()
}

/// The adapter's getter of a table.
pub fn getter(via: usize, table: Table) -> Option<Getter> {
    let getter = REGISTRY.get(via)?.getters.get(table as usize)?.load(Ordering::Acquire);
    // SAFETY: `store_getter` stores what an adapter exports under the getter's name.
    (!getter.is_null()).then(|| unsafe { as_getter(getter) })
}

/// # Safety
///
/// An adapter exports it under the name of a getter.
unsafe fn as_getter(exported: *mut c_void) -> Getter {
    // SAFETY: the caller's promise; a getter has this signature (`ur_ddi.h`).
    unsafe { std::mem::transmute::<*mut c_void, Getter>(exported) }
}

/// The number of slots up to the last one that a getter fills.
///
/// # Safety
///
/// `exported` is what an adapter exports under the name of the getter.
pub unsafe fn length(exported: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    filled_by(unsafe { as_getter(exported) }).len()
}

/// The pointers that the adapter puts into a table.
pub fn query_table(via: usize, table: Table) -> Vec<*mut c_void> {
    getter(via, table).map(filled_by).unwrap_or_default()
}

/// The pointers that a getter puts into its table. The CUDA adapter leaves slots between others as they are: they are
/// null, as in the adapter's own table.
fn filled_by(getter: Getter) -> Vec<*mut c_void> {
    let mut scratch = [UNFILLED; SLOT_LIMIT];
    // SAFETY: no table has more slots in any release.
    let result = unsafe { getter(VERSION, scratch.as_mut_ptr()) };
    let length = scratch.iter().rposition(|slot| *slot != UNFILLED).map_or(0, |last| last + 1);
    let filled = scratch.into_iter().take(length).map(|slot| if slot == UNFILLED { null_mut() } else { slot });
    if result.is_success() { filled.collect() } else { Vec::new() }
}

/// The adapter's function in a slot, whether it is hooked or not, as type `F`.
///
/// # Safety
///
/// `F` is the type of pointer that `ur_ddi.h` gives the slot.
pub unsafe fn function<F: Copy>(via: usize, table: Table, slot: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = query_table(via, table).get(slot).copied().filter(|function| !function.is_null())?;
    // SAFETY: the caller's promise, and as wide as a pointer.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&function) })
}

/// A `ur…GetInfo` of an adapter for handles of type `H`. It may throw.
pub type GetInfo<H> = unsafe extern "C-unwind" fn(H, u32, usize, *mut c_void, *mut usize) -> ResultCode;

/// Asks an adapter for a property of a handle; returns the size of the answer in bytes. Without room it returns only
/// that.
///
/// # Safety
///
/// The adapter made `handle`, `get_info` is its function, and the answer is an array of `T`.
pub unsafe fn property<H, T>(
    get_info: GetInfo<H>,
    handle: H,
    property: u32,
    room: &mut [T],
) -> Result<usize, ResultCode> {
    let mut size = 0;
    let answer = if room.is_empty() { null_mut() } else { room.as_mut_ptr().cast() };
    // SAFETY: the room has the size that is passed, and the answer's size goes into a live variable.
    let result = unsafe { get_info(handle, property, size_of_val(room), answer, &raw mut size) };
    if result.is_success() { Ok(size) } else { Err(result) }
}

/// Reads from an adapter's first handle its dispatch table, by which handles are assigned to adapters, and asks for
/// its kind.
pub fn identify(via: usize, handle: AdapterHandle) {
    let Some(known) = REGISTRY.get(via).filter(|known| known.dispatch_table.load(Ordering::Acquire).is_null()) else {
        return;
    };
    // SAFETY: this slot holds the adapter's `urAdapterGetInfo`, which has this signature (`ur_api.h`).
    if let Some(get_info) = unsafe { function::<GetInfo<AdapterHandle>>(via, Table::Adapter, ADAPTER_GET_INFO) } {
        let ask = |asked| {
            let mut answer = 0_u32;
            // SAFETY: both properties are numbers of this size.
            unsafe { property(get_info, handle, asked, slice::from_mut(&mut answer)) }.ok().map(|_| answer)
        };
        known.generation.store(ask(UR_ADAPTER_INFO_VERSION).unwrap_or(0), Ordering::Release);
        known.level_zero.store(ask(UR_ADAPTER_INFO_BACKEND) == Some(UR_BACKEND_LEVEL_ZERO), Ordering::Release);
    }
    known.dispatch_table.store(handle.dispatch_table(), Ordering::Release);
}

/// Whether adapter `via` is for Level Zero devices.
#[inline]
pub fn is_level_zero(via: usize) -> bool {
    REGISTRY.get(via).is_some_and(|known| known.level_zero.load(Ordering::Acquire))
}

/// The generation of the adapter (`UR_ADAPTER_INFO_VERSION`): 1 or 2; 0 if it is unknown.
pub fn generation(via: usize) -> u32 {
    REGISTRY.get(via).map_or(0, |known| known.generation.load(Ordering::Acquire))
}

/// The number of the adapter that made a handle.
pub fn adapter_of(handle: AdapterHandle) -> Option<usize> {
    let table = handle.dispatch_table();
    REGISTRY.iter().position(|known| !table.is_null() && known.dispatch_table.load(Ordering::Acquire) == table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_left_out_does_not_end_a_table() {
        /// `ur_enqueue_exp_dditable_t`, which has no `pfnHostTaskExp` in the CUDA adapter.
        unsafe extern "C" fn without_the_eighth(_: u32, into: *mut *mut c_void) -> ResultCode {
            // SAFETY: `filled_by` has room for more.
            let slots = unsafe { slice::from_raw_parts_mut(into, 10) };
            slots.iter_mut().enumerate().filter(|(at, _)| *at != 7).for_each(|(at, slot)| {
                *slot = std::ptr::without_provenance_mut(at + 1);
            });
            ResultCode::SUCCESS
        }
        let filled: Vec<_> = filled_by(without_the_eighth).into_iter().map(<*mut c_void>::addr).collect();
        assert_eq!(filled, [1, 2, 3, 4, 5, 6, 7, 0, 9, 10]);
    }

    #[test]
    fn the_order_of_tables_is_the_one_of_their_numbers() {
        for (number, table) in Table::ALL.iter().copied().enumerate() {
            assert_eq!(table as usize, number);
        }
    }
}
