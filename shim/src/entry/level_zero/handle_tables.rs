//! The tables that a driver's handles begin with.
//!
//! A loader since 1.24 that has several drivers does not call through the tables that it has asked a driver for:
//! where the driver says that its handles begin with its tables (`ZE_extension_driver_ddi_handles`), the loader calls
//! through these. All handles of a driver begin with the same ones, which are changed in place once the driver has
//! said so.
//!
//! The place of a table among them has changed from release to release, so a table is found by its content: the
//! driver is asked for it into memory of ours, and the one that begins with the same pointers is it. What is not
//! found in writable data of a library must be left alone.

use std::{ffi::c_void, ptr::null_mut, sync::atomic::Ordering};

use urscope_schema::api::{Function, Table};

use super::{DRIVER_FUNCTIONS, DRIVER_STATES, Driver, TABLES, fill, put, replace};
use crate::raw::symbols::modules;

/// How many tables are looked for behind a handle. The API 1.17 has 32.
const TABLE_LIMIT: usize = 64;

/// More slots than any table has.
const SLOT_LIMIT: usize = 128;

/// Where the pointers to the tables begin in a `ze_dditable_driver_t`: behind a version and a flag.
const POINTERS: usize = 8;

/// Replaces functions in the tables that a handle of a driver begins with, the first time.
///
/// # Safety
///
/// `handle` is one that the driver number `VIA` has made, which has said that its handles begin with its tables (a
/// `ze_handle_t` of `ze_ddi_common.h`).
pub(super) unsafe fn replace_in_handle<const VIA: usize>(handle: *mut c_void) {
    let Some(driver) = DRIVER_STATES.get(VIA).filter(|_| !handle.is_null()) else { return };
    if driver.tables_replaced.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the caller's promise: the first word is the address of a `ze_dditable_driver_t`.
    let tables = unsafe { handle.cast::<usize>().read_unaligned() };
    let count = (modules::mapped_from(tables).saturating_sub(POINTERS) / size_of::<usize>()).min(TABLE_LIMIT);
    let places = std::ptr::with_exposed_provenance::<usize>(tables + POINTERS);
    // SAFETY: so many words are mapped there, in a library that is never unloaded.
    let addresses: Vec<usize> = (0..count).map(|place| unsafe { places.add(place).read_unaligned() }).collect();
    let mut found = 0;
    for (place, table) in TABLES.iter().enumerate() {
        let expected = query_table(driver, place, *table);
        let Some(slots) = addresses.iter().find_map(|at| slots_at(*at, &expected)) else { continue };
        found += 1;
        for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == *table) {
            let (_, slot) = function.slot();
            if slot < expected.len() {
                // SAFETY: `slots_at` has found so many slots, which may be written.
                unsafe { replace::<VIA>(slots.add(slot), function) };
            }
        }
    }
    for at in addresses {
        // SAFETY: as in `slots_at`.
        unsafe { driver_table::<VIA>(driver, at) };
    }
    if found == 0 {
        tracing::warn!(
            "the tables behind the handles of a Level Zero driver were not found; calls that a loader makes through them are not recorded"
        );
    }
}

/// What the driver fills a table with.
fn query_table(driver: &Driver, place: usize, table: Table) -> Vec<*mut c_void> {
    let version = driver.version.load(Ordering::Relaxed);
    let mut slots = vec![null_mut(); SLOT_LIMIT];
    // SAFETY: there is room for a table of any version.
    let result = unsafe { fill(driver.getters.get(place), version, slots.as_mut_ptr()) };
    slots.truncate(if result.is_success() { table.slots(version & 0xffff) } else { 0 });
    slots
}

/// The slots at that address, if they are in writable data of a library and hold what was `expected`.
fn slots_at(at: usize, expected: &[*mut c_void]) -> Option<*mut *mut c_void> {
    if expected.iter().all(|slot| slot.is_null()) || writable_slots(at) < expected.len() {
        return None;
    }
    let slots = std::ptr::with_exposed_provenance_mut::<*mut c_void>(at);
    // SAFETY: so many slots are writable data of a library that is never unloaded.
    let same =
        expected.iter().enumerate().all(|(slot, expected)| unsafe { slots.add(slot).read_volatile() } == *expected);
    same.then_some(slots)
}

/// How many words from an address on are writable data of a library; 0 for one that is no address of a word.
fn writable_slots(at: usize) -> usize {
    if at.is_multiple_of(align_of::<usize>()) { modules::writable_from(at) / size_of::<usize>() } else { 0 }
}

/// Replaces functions at that address if the driver's own table is there, which has no row.
///
/// # Safety
///
/// The driver number `VIA` is `driver`.
unsafe fn driver_table<const VIA: usize>(driver: &Driver, at: usize) {
    let slots = std::ptr::with_exposed_provenance_mut::<*mut c_void>(at);
    let last = DRIVER_FUNCTIONS.iter().map(|(slot, _)| *slot).max().unwrap_or_default();
    if writable_slots(at) <= last {
        return;
    }
    let is_own = DRIVER_FUNCTIONS.iter().enumerate().all(|(which, (slot, _))| {
        let original = driver.originals.get(which).map_or(null_mut(), |original| original.load(Ordering::Acquire));
        // SAFETY: so many slots are writable data of a library that is never unloaded.
        !original.is_null() && unsafe { slots.add(*slot).read_volatile() } == original
    });
    if is_own {
        for (which, (slot, _)) in DRIVER_FUNCTIONS.iter().enumerate() {
            // SAFETY: as above.
            unsafe { put(slots.add(*slot), super::driver_hook::<VIA>(which)) };
        }
    }
}
