//! The tables that a driver's handles begin with.
//!
//! With several drivers, a loader since 1.24 does not call through the tables that it asks a driver for. If the
//! driver has the extension `ZE_extension_driver_ddi_handles`, its handles begin with its tables, and the loader
//! calls through these. All handles of a driver have the same tables, which are changed in place.
//!
//! The order of the tables differs between releases, so a table is found by its content: the driver fills a table of
//! urscope's, and the table with the same pointers is searched for. Only tables in writable data of a library are
//! changed.

use std::{ffi::c_void, ptr::null_mut, sync::atomic::Ordering};

use urscope_schema::api::{Function, Table};

use super::{DRIVER_FUNCTIONS, DRIVER_STATES, Driver, TABLES, fill, put, replace};
use crate::raw::symbols::modules;

/// The most tables of a handle. The API 1.17 has 32.
const TABLE_LIMIT: usize = 64;

/// More slots than any table has.
const SLOT_LIMIT: usize = 128;

/// The offset of the pointers to the tables in a `ze_dditable_driver_t`, after a version and a flag.
const POINTERS: usize = 8;

/// Replaces functions in the tables of a driver's handles, once.
///
/// # Safety
///
/// `handle` was made by driver `via`, whose handles begin with its tables (a `ze_handle_t` of `ze_ddi_common.h`).
pub(super) unsafe fn replace_in_handle(via: usize, handle: *mut c_void) {
    let Some(driver) = DRIVER_STATES.get(via).filter(|_| !handle.is_null()) else { return };
    if driver.tables_replaced.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the caller's promise: the first word is the address of a `ze_dditable_driver_t`.
    let tables = unsafe { handle.cast::<usize>().read_unaligned() };
    let count = (modules::mapped_from(tables).saturating_sub(POINTERS) / size_of::<usize>()).min(TABLE_LIMIT);
    let places = std::ptr::with_exposed_provenance::<usize>(tables + POINTERS);
    // SAFETY: `count` words are mapped there, in a library that is never unloaded.
    let addresses: Vec<usize> = (0..count).map(|place| unsafe { places.add(place).read_unaligned() }).collect();
    let mut found = 0;
    for (place, table) in TABLES.iter().enumerate() {
        let expected = query_table(driver, place, *table);
        let Some(slots) = addresses.iter().find_map(|at| slots_at(*at, &expected)) else { continue };
        found += 1;
        for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == *table) {
            let (_, slot) = function.slot();
            if slot < expected.len() {
                // SAFETY: `slots_at` has found as many slots, which may be written.
                unsafe { replace(via, slots.add(slot), function) };
            }
        }
    }
    for at in addresses {
        // SAFETY: as in `slots_at`.
        unsafe { driver_table(via, driver, at) };
    }
    if found == 0 {
        tracing::warn!(
            "the tables behind the handles of a Level Zero driver were not found; calls that a loader makes through them are not recorded"
        );
    }
}

/// The pointers that the driver puts into a table.
fn query_table(driver: &Driver, place: usize, table: Table) -> Vec<*mut c_void> {
    let version = driver.version.load(Ordering::Relaxed);
    let mut slots = vec![null_mut(); SLOT_LIMIT];
    // SAFETY: there is room for a table of any version.
    let result = unsafe { fill(driver.getters.get(place), version, slots.as_mut_ptr()) };
    slots.truncate(if result.is_success() { table.slots(version & 0xffff) } else { 0 });
    slots
}

/// The slots at an address, if they are writable data of a library and have the `expected` contents.
fn slots_at(at: usize, expected: &[*mut c_void]) -> Option<*mut *mut c_void> {
    if expected.iter().all(|slot| slot.is_null()) || writable_slots(at) < expected.len() {
        return None;
    }
    let slots = std::ptr::with_exposed_provenance_mut::<*mut c_void>(at);
    // SAFETY: as many slots are writable data of a library that is never unloaded.
    let same =
        expected.iter().enumerate().all(|(slot, expected)| unsafe { slots.add(slot).read_volatile() } == *expected);
    same.then_some(slots)
}

/// The number of words of writable data of a library from an address on; 0 for an unaligned address.
fn writable_slots(at: usize) -> usize {
    if at.is_multiple_of(align_of::<usize>()) { modules::writable_from(at) / size_of::<usize>() } else { 0 }
}

/// Replaces functions at an address if the `ze_driver_dditable_t` is there, whose functions have no rows.
///
/// # Safety
///
/// `driver` is driver `via`.
unsafe fn driver_table(via: usize, driver: &Driver, at: usize) {
    let slots = std::ptr::with_exposed_provenance_mut::<*mut c_void>(at);
    let last = DRIVER_FUNCTIONS.iter().map(|(slot, _)| *slot).max().unwrap_or_default();
    if writable_slots(at) <= last {
        return;
    }
    let is_own = DRIVER_FUNCTIONS.iter().enumerate().all(|(which, (slot, _))| {
        let original = driver.originals.get(which).map_or(null_mut(), |original| original.load(Ordering::Acquire));
        // SAFETY: as many slots are writable data of a library that is never unloaded.
        !original.is_null() && unsafe { slots.add(*slot).read_volatile() } == original
    });
    if is_own {
        for (which, (slot, _)) in DRIVER_FUNCTIONS.iter().enumerate() {
            // SAFETY: as above.
            unsafe { put(slots.add(*slot), super::driver_hook(via, which)) };
        }
    }
}
