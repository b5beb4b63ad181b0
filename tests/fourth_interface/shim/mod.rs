//! HIP: the functions that `dlsym` finds in its library, and exported functions for programs that link it.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use urscope_schema::api::role::Sources;
use urscope_schema::api::{Function, ResultCode, Table};

use super::libraries::{GETTERS, Libraries, Symbol};
use super::{Exported, Interface, Lookup, driver, hooks};
use crate::call::Origin;
use crate::raw::args::reader::Reader;
use crate::raw::args::row::{Call, Callee, Frame};
use crate::raw::originals::{self, LIBRARIES};
use crate::raw::threads::mutex::Mutex;

/// The interface.
#[derive(Debug)]
pub(super) struct Hip;

static DRIVERS: Libraries = Libraries {
    is_own: |function| function.slot().0 == Table::Hip,
    driver: "libamdhip64.so.7",
    kind: "hip-runtime",
    getters: &[],
    hook: hooks::hook,
    getter_hook: |_, _| null_mut(),
    found: |_, _| (),
    modules: Mutex::new(Vec::new()),
    real_getters: [const { [const { AtomicPtr::new(null_mut()) }; GETTERS] }; LIBRARIES],
    reported: [const { AtomicBool::new(false) }; LIBRARIES],
};

impl Interface for Hip {
    fn call(&self, via: usize, function: Function, frame: Frame) -> ResultCode {
        let original = originals::original(via, function);
        if original.is_null() {
            return function.interface().result(ResultCode::UNINITIALIZED);
        }
        // SAFETY: the stored function has the row's signature (`hip_runtime_api.h`).
        let mut call = unsafe { Call::new(function, &Hip, frame, Callee::Function(original)) };
        driver::pass(&mut call, true, || {
            DRIVERS.report_once(via);
            Origin::Library(0)
        })
    }

    fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup> {
        DRIVERS.looked_up(name, real)
    }

    fn exported(&self, function: Function, _: bool) -> Exported {
        Exported { address: DRIVERS.exported(Symbol::Row(function)), is_final: true }
    }
}

impl Reader for Hip {
    /// No function tells how large a kernel's arguments are.
    fn kernel_pointers(&self, _: &Sources, _: &mut dyn FnMut(u64)) -> bool {
        false
    }
}
