//! The CUDA driver: the functions that `dlsym` finds in it, those that `cuGetProcAddress` returns, and exported
//! functions for programs that link it. How its structures are read is in [`structures`].

mod allocation;
mod commands;
mod copies;
mod kernel_arguments;
mod structures;

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use urscope_schema::api::{CUDA, Effect, Function, ResultCode};
use urscope_schema::handle::{Kind, UsmType};
use urscope_schema::trace::records::CUDA_DRIVER;

use super::libraries::{GETTERS, Libraries, Symbol, library};
use super::{Exported, Interface, Lookup, driver};
use crate::call::Origin;
use crate::raw::args::row::{Call, Callee, Frame};
use crate::raw::originals::{self, LIBRARIES};
use crate::raw::{software_device, symbols::modules::Module, symbols::real_dlsym, threads::mutex::Mutex};

/// The interface.
pub(super) struct Cuda;

static DRIVERS: Libraries = Libraries {
    is_own: |function| function.interface() == &CUDA,
    driver: "libcuda.so.1",
    kind: CUDA_DRIVER,
    getters: &[c"cuGetProcAddress", c"cuGetProcAddress_v2"],
    hook: commands::hook,
    getter_hook,
    found,
    modules: Mutex::new(Vec::new()),
    real_getters: [const { [const { AtomicPtr::new(null_mut()) }; GETTERS] }; LIBRARIES],
    reported: [const { AtomicBool::new(false) }; LIBRARIES],
};

/// `cuCtxGetCurrent` of each library, or null.
static CURRENT: [AtomicPtr<c_void>; LIBRARIES] = [const { AtomicPtr::new(null_mut()) }; LIBRARIES];

impl Interface for Cuda {
    fn call(&self, via: usize, function: Function, frame: Frame) -> ResultCode {
        let original = originals::original(via, function);
        if original.is_null() {
            return uninitialized();
        }
        // SAFETY: the stored function has the row's signature (`cuda.h`).
        let mut call = unsafe { Call::new(function, &structures::Structures, frame, Callee::Function(original)) };
        driver::pass(&mut call, true, || origin(via, function))
    }

    fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup> {
        if name.to_bytes().starts_with(b"cu") { DRIVERS.looked_up(name, real) } else { None }
    }

    fn exported(&self, function: Function, is_twin: bool) -> Exported {
        exported(if is_twin { Symbol::Twin(function) } else { Symbol::Row(function) })
    }

    fn exported_getter(&self, version: usize) -> Exported {
        exported(Symbol::Getter(version))
    }
}

/// The origin of a recorded call of a function of library `via`.
fn origin(via: usize, function: Function) -> Origin {
    DRIVERS.report_once(library(via));
    Origin::Library(if makes_in_context(function) { current_context(library(via)) } else { 0 })
}

fn found(via: usize, module: &Module) {
    if let Some(current) = CURRENT.get(via) {
        current.store(real_dlsym::in_library(&module.path, c"cuCtxGetCurrent"), Ordering::Release);
    }
    software_device::found(module);
    let functions = kernel_arguments::PARAM_INFO.map(|name| real_dlsym::in_library(&module.path, name));
    let address_range = real_dlsym::in_library(&module.path, allocation::ADDRESS_RANGE);
    // SAFETY: the functions of these names.
    unsafe {
        kernel_arguments::set_param_info(functions);
        allocation::set_address_range(address_range);
    }
}

/// Whether a call makes something that belongs to the current context. Memory of a pool and physical memory belong to a
/// device.
fn makes_in_context(function: Function) -> bool {
    match function.effect() {
        Effect::Allocates(_) => function.usm_type() != Some(UsmType::Pool),
        Effect::Opens(Kind::Usm | Kind::Event) | Effect::Creates(Kind::Event) => true,
        _ => false,
    }
}

/// What a function answers that nobody has, as the driver does before `cuInit`.
fn uninitialized() -> ResultCode {
    CUDA.result(ResultCode::UNINITIALIZED)
}

type Current = unsafe extern "C" fn(*mut u64) -> ResultCode;

/// The context that is current on this thread; 0 if there is none, or the library cannot be asked.
fn current_context(via: usize) -> u64 {
    let current = CURRENT.get(via).map_or(null_mut(), |current| current.load(Ordering::Acquire));
    if current.is_null() {
        return 0;
    }
    let mut context = 0;
    // SAFETY: the function of this name has this signature (`cuda.h`), and writes a pointer.
    let result = unsafe { std::mem::transmute::<*mut c_void, Current>(current)(&raw mut context) };
    if result.is_success() { context } else { 0 }
}

type Address = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> ResultCode;
type AddressV2 = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> ResultCode;

/// The hook of a getter of library `via`.
fn getter_hook(version: usize, via: usize) -> *mut c_void {
    macro_rules! hooks {
        ($($via:literal)*) => {
            [$([address_hook::<$via> as *mut c_void, address_v2_hook::<$via> as *mut c_void]),*]
        };
    }
    let hooks: [[*mut c_void; GETTERS]; LIBRARIES] = hooks!(0 1 2 3 4 5 6 7);
    hooks.get(via).and_then(|hooks| hooks.get(version)).copied().unwrap_or(null_mut())
}

#[unsafe(naked)]
unsafe extern "C" fn address_hook<const VIA: usize>() {
    naked_asm!("mov r8d, {via}", "jmp {to}", via = const VIA, to = sym address)
}

#[unsafe(naked)]
unsafe extern "C" fn address_v2_hook<const VIA: usize>() {
    naked_asm!("mov r9d, {via}", "jmp {to}", via = const VIA, to = sym address_v2)
}

/// Takes a call of `cuGetProcAddress` of CUDA 11.
///
/// # Safety
///
/// As for the real function: `name` is a C string, and `address` a variable for a pointer (`cuda.h`).
unsafe extern "C" fn address(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
    via: usize,
) -> ResultCode {
    let real = DRIVERS.getter(via, 0);
    if real.is_null() {
        return uninitialized();
    }
    // SAFETY: the stored function has this signature; the caller's promise, passed on.
    let result = unsafe { std::mem::transmute::<*mut c_void, Address>(real)(name, address, version, flags) };
    // SAFETY: as above.
    unsafe { replace(name, address, result) }
}

/// Takes a call of `cuGetProcAddress_v2`.
///
/// # Safety
///
/// As for the real function, with a variable for its `status`, or null.
unsafe extern "C" fn address_v2(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
    via: usize,
) -> ResultCode {
    let real = DRIVERS.getter(via, 1);
    if real.is_null() {
        return uninitialized();
    }
    // SAFETY: the stored function has this signature; the caller's promise, passed on.
    let result = unsafe { std::mem::transmute::<*mut c_void, AddressV2>(real)(name, address, version, flags, status) };
    // SAFETY: as above.
    unsafe { replace(name, address, result) }
}

/// Replaces the pointer that a getter has returned for `name` by a hook; returns the getter's result.
///
/// # Safety
///
/// The getter was called with these arguments, and has returned `result`.
unsafe fn replace(name: *const c_char, address: *mut *mut c_void, result: ResultCode) -> ResultCode {
    if result.is_success() && !name.is_null() && !address.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *address = DRIVERS.returned(CStr::from_ptr(name), *address) };
    }
    result
}

/// What an exported function jumps to. While no driver is loaded, that is one that answers as the driver does before
/// `cuInit`.
fn exported(symbol: Symbol) -> Exported {
    extern "C" fn absent() -> ResultCode {
        uninitialized()
    }
    match DRIVERS.exported(symbol) {
        target if target.is_null() => Exported { address: absent as *mut c_void, is_final: false },
        address => Exported { address, is_final: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_for_without_its_version() {
        let versions = |name: &CStr| DRIVERS.versions(name).map(|symbol| DRIVERS.name(symbol)).collect::<Vec<_>>();
        let names = |names: &[&CStr]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(versions(c"cuIpcOpenMemHandle"), names(&[c"cuIpcOpenMemHandle", c"cuIpcOpenMemHandle_v2"]));
        assert_eq!(versions(c"cuGetProcAddress"), names(DRIVERS.getters));
        assert_eq!(versions(c"cuMemFreeAsync"), names(&[c"cuMemFreeAsync", c"cuMemFreeAsync_ptsz"]));
        assert!(versions(c"cuMem").is_empty() && versions(c"cuInit").is_empty());
        assert_eq!(DRIVERS.symbol(c"cuMemFree_v2"), Some(Symbol::Row(Function::cuMemFree_v2)));
        assert_eq!(DRIVERS.symbol(c"cuMemFreeAsync_ptsz"), Some(Symbol::Twin(Function::cuMemFreeAsync)));
        assert_eq!([c"cuMemFree", c"urUSMFree", c"cuInit"].map(|name| DRIVERS.symbol(name)), [None; 3]);
    }
}
