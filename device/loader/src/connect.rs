//! Fills the slots as a loader does: it asks the driver, which is this library itself, for its tables by dlsym(3).
//!
//! So a library that is preloaded to watch a driver sees and replaces what it would with a real loader, and every call
//! passes it once. Without such a library nothing changes.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Once, atomic::Ordering};

use urscope_device::ddi::API_VERSION;

use crate::{Slot, TABLES};

/// More slots than any table has.
const MAX_SLOTS: usize = 128;

type Getter = unsafe extern "C" fn(u32, *mut *mut ()) -> u32;

/// Fills the slots, the first time.
pub(crate) extern "C" fn once() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        if let Some(own) = own() {
            for (getter, slots) in TABLES {
                connect(own, getter, slots);
            }
        }
    });
}

/// The handle of this library for dlsym(3).
fn own() -> Option<*mut c_void> {
    let mut info = libc::Dl_info { dli_fname: null(), dli_fbase: null_mut(), dli_sname: null(), dli_saddr: null_mut() };
    // SAFETY: dladdr(3) only compares the address, and fills the structure when it returns other than 0.
    let found = unsafe { libc::dladdr((&raw const crate::zeSoftInterface).cast(), &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gave the name of a library, which is loaded, so nothing is loaded now.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    Some(handle).filter(|handle| !handle.is_null())
}

fn connect(own: *mut c_void, getter: &CStr, slots: &[&Slot]) {
    // SAFETY: the handle of this library, and a C string.
    let found = unsafe { libc::dlsym(own, getter.as_ptr()) };
    if found.is_null() || slots.len() > MAX_SLOTS {
        return;
    }
    let mut table = [null_mut(); MAX_SLOTS];
    // SAFETY: a getter of this name has this signature (ze_ddi.h), and there is room for its table.
    let result = unsafe { std::mem::transmute::<*mut c_void, Getter>(found)(API_VERSION, table.as_mut_ptr()) };
    if result != 0 {
        return;
    }
    for (slot, function) in slots.iter().zip(table).filter(|(_, function)| !function.is_null()) {
        slot.store(function, Ordering::Release);
    }
}
