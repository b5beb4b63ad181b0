//! The entry point for the CUDA driver: the functions that `dlsym` finds in it, those that `cuGetProcAddress` returns, and
//! exported functions ([`exports`]) for programs that link it.
//!
//! A hook calls the very pointer that it stands for. `cuGetProcAddress` returns symbols of the driver, in the version that
//! is asked for: so a pointer that it returns is the function of a row if that row's symbol has this address, and any other
//! one is left alone. Other libraries may have functions of these names in front of the driver's (they limit memory, or
//! record calls): each library has hooks of its own, and what one calls in a recorded call is part of that call.

mod calls;
pub mod exports;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use urscope_schema::api::{CUDA, Function, Table, UrResult};
use urscope_schema::trace::records::CUDA_DRIVER;

use super::{driver, real_dlsym};
use crate::raw::{
    args::{allocation, kernel_arguments},
    late_functions, software_device,
    symbols::modules::Module,
    threads::mutex::Mutex,
};

/// The most libraries with such functions in a process: the driver, and those in front of it.
const LIBRARIES: usize = 4;

/// `cuGetProcAddress`, by its versions.
const GETTERS: [&CStr; 2] = [c"cuGetProcAddress", c"cuGetProcAddress_v2"];

/// A function that is hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// One of [`GETTERS`].
    Getter(usize),
    /// A row.
    Row(Function),
}

impl Symbol {
    /// The function of this name.
    pub(super) fn of(name: &CStr) -> Option<Self> {
        let getter = GETTERS.iter().position(|getter| *getter == name).map(Self::Getter);
        getter.or_else(|| rows().find(|row| row.name().as_bytes() == name.to_bytes()).map(Self::Row))
    }

    /// All versions of the function that programs ask for by `name`.
    fn versions(name: &CStr) -> impl Iterator<Item = Self> {
        let all = (0..GETTERS.len()).map(Self::Getter).chain(rows().map(Self::Row));
        all.filter(|symbol| {
            let version = symbol.bytes().strip_prefix(name.to_bytes());
            version.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"_"))
        })
    }

    /// Its name.
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Getter(version) => GETTERS.get(version).map_or(&[], |name| name.to_bytes()),
            Self::Row(function) => function.name().as_bytes(),
        }
    }

    fn name(self) -> CString {
        CString::new(self.bytes()).unwrap_or_default()
    }
}

fn rows() -> impl Iterator<Item = Function> {
    Function::ALL.iter().copied().filter(|function| function.slot().0 == Table::Cuda)
}

/// A library's own functions.
struct Library {
    getters: [AtomicPtr<c_void>; GETTERS.len()],
    functions: [AtomicPtr<c_void>; Function::COUNT],
    /// Its `cuCtxGetCurrent`, or null.
    current: AtomicPtr<c_void>,
    reported: AtomicBool,
}

static LIBRARY_STATES: [Library; LIBRARIES] = [const {
    Library {
        getters: [const { AtomicPtr::new(null_mut()) }; GETTERS.len()],
        functions: [const { AtomicPtr::new(null_mut()) }; Function::COUNT],
        current: AtomicPtr::new(null_mut()),
        reported: AtomicBool::new(false),
    }
}; LIBRARIES];

/// The libraries, by number.
static MODULES: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// The address of a hook for the library with a number below [`LIBRARIES`].
macro_rules! for_library {
    ($via:expr, $($function:ident)::+) => {
        match $via {
            0 => $($function)::+::<0> as *mut c_void,
            1 => $($function)::+::<1> as *mut c_void,
            2 => $($function)::+::<2> as *mut c_void,
            _ => $($function)::+::<3> as *mut c_void,
        }
    };
}
use for_library;

/// The result of a lookup that found `real`; `None` if no library but urscope has the function.
pub(super) fn looked_up(symbol: Symbol, real: *mut c_void) -> Option<*mut c_void> {
    if real.is_null() || Module::of(real as usize)? != own()? {
        return Some(hooked(symbol, real));
    }
    // SAFETY: `RTLD_NEXT` is always allowed.
    let next = unsafe { real_dlsym::real(libc::RTLD_NEXT, &symbol.name()) };
    (!next.is_null()).then(|| hooked(symbol, next))
}

fn own() -> Option<Module> {
    Module::of(own as *const () as usize)
}

/// The hook for a function of a library; the function itself if it is null or urscope's, or if there are too many libraries.
fn hooked(symbol: Symbol, real: *mut c_void) -> *mut c_void {
    let Some(via) = number(real) else { return real };
    let Some(library) = LIBRARY_STATES.get(via) else { return real };
    let (place, hook) = match symbol {
        Symbol::Getter(version) => (
            library.getters.get(version),
            Some(if version == 0 { for_library!(via, address) } else { for_library!(via, address_v2) }),
        ),
        Symbol::Row(function) => (library.functions.get(function as usize), calls::hook(function, via)),
    };
    let (Some(place), Some(hook)) = (place, hook) else { return real };
    place.store(real, Ordering::Release);
    hook
}

/// The number of the library of a function; `None` if that is urscope, or if there is no room for another one.
fn number(function: *mut c_void) -> Option<usize> {
    let module = Module::of(function as usize)?;
    if module == own()? {
        return None;
    }
    late_functions::find_all();
    let mut modules = MODULES.lock();
    if let Some(via) = modules.iter().position(|known| *known == module) {
        return Some(via);
    }
    if modules.len() == LIBRARIES {
        return None;
    }
    modules.push(module.clone());
    let via = modules.len() - 1;
    drop(modules);
    let current = real_dlsym::in_library(&module.path, c"cuCtxGetCurrent");
    LIBRARY_STATES.get(via)?.current.store(current, Ordering::Release);
    software_device::found(&module);
    let functions = kernel_arguments::PARAM_INFO.map(|name| real_dlsym::in_library(&module.path, name));
    let address_range = real_dlsym::in_library(&module.path, allocation::ADDRESS_RANGE);
    // SAFETY: the functions of these names.
    unsafe {
        kernel_arguments::set_param_info(functions);
        allocation::set_address_range(address_range);
    }
    Some(via)
}

type Address = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> UrResult;
type AddressV2 = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> UrResult;

/// The hook of `cuGetProcAddress` of CUDA 11.
///
/// # Safety
///
/// As for the real function: `name` is a C string, and `address` a variable for a pointer (`cuda.h`).
unsafe extern "C" fn address<const VIA: usize>(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> UrResult {
    // SAFETY: the stored function has this signature.
    let Some(real) = (unsafe { getter::<Address>(VIA, 0) }) else { return uninitialized() };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(name, address, version, flags) };
    // SAFETY: as above.
    unsafe { replace(name, address, result) }
}

/// The hook of `cuGetProcAddress_v2`.
///
/// # Safety
///
/// As for the real function, with a variable for its `status`, or null.
unsafe extern "C" fn address_v2<const VIA: usize>(
    name: *const c_char,
    address: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> UrResult {
    // SAFETY: the stored function has this signature.
    let Some(real) = (unsafe { getter::<AddressV2>(VIA, 1) }) else { return uninitialized() };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(name, address, version, flags, status) };
    // SAFETY: as above.
    unsafe { replace(name, address, result) }
}

/// What a function answers that nobody has.
fn uninitialized() -> UrResult {
    CUDA.result(UrResult::UNINITIALIZED)
}

/// A library's own getter.
///
/// # Safety
///
/// `F` is the type of that version.
unsafe fn getter<F: Copy>(via: usize, version: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let real = LIBRARY_STATES.get(via)?.getters.get(version)?.load(Ordering::Acquire);
    // SAFETY: the caller's promise, and as wide as a pointer.
    (!real.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&real) })
}

/// Replaces the pointer that a getter has returned for `name` by a hook; returns the getter's result.
///
/// # Safety
///
/// The getter was called with these arguments, and has returned `result`.
unsafe fn replace(name: *const c_char, address: *mut *mut c_void, result: UrResult) -> UrResult {
    if !result.is_success() || name.is_null() || address.is_null() {
        return result;
    }
    // SAFETY: the caller's promise.
    let (name, real) = unsafe { (CStr::from_ptr(name), *address) };
    let mut versions = Symbol::versions(name).peekable();
    if versions.peek().is_some()
        && let Some(module) = Module::of(real as usize)
        && let Some(symbol) = versions.find(|symbol| real_dlsym::in_library(&module.path, &symbol.name()) == real)
    {
        // SAFETY: the caller's promise.
        unsafe { *address = hooked(symbol, real) };
    }
    result
}

/// The library's own function; null if it has not been seen.
fn real(via: usize, function: Function) -> *mut c_void {
    let original = LIBRARY_STATES.get(via).and_then(|library| library.functions.get(function as usize));
    original.map_or(null_mut(), |original| original.load(Ordering::Acquire))
}

type Current = unsafe extern "C" fn(*mut u64) -> UrResult;

/// The context that is current on this thread; 0 if there is none, or the library cannot be asked.
fn current_context(via: usize) -> u64 {
    let Some(library) = LIBRARY_STATES.get(via) else { return 0 };
    let current = library.current.load(Ordering::Acquire);
    if current.is_null() {
        return 0;
    }
    let mut context = 0;
    // SAFETY: the function of this name has this signature (`cuda.h`), and writes a pointer.
    let result = unsafe { std::mem::transmute::<*mut c_void, Current>(current)(&raw mut context) };
    if result.is_success() { context } else { 0 }
}

/// Reports the library at its first recorded call, so that it is not in the trace of a process that only computes.
fn report_once(via: usize) {
    let Some(library) = LIBRARY_STATES.get(via) else { return };
    if library.reported.load(Ordering::Relaxed) {
        return;
    }
    // This may be a signal handler that interrupted the holder of the lock: the next call reports then.
    let Some(module) = MODULES.try_lock().map(|modules| modules.get(via).cloned()) else { return };
    if library.reported.swap(true, Ordering::Relaxed) {
        return;
    }
    let functions: Vec<_> = rows().filter(|function| !real(via, *function).is_null()).collect();
    driver::report(CUDA_DRIVER, module.as_ref(), &functions);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_for_without_its_version() {
        let versions = |name: &CStr| Symbol::versions(name).map(Symbol::name).collect::<Vec<_>>();
        assert_eq!(
            versions(c"cuIpcOpenMemHandle"),
            [c"cuIpcOpenMemHandle", c"cuIpcOpenMemHandle_v2"].map(CStr::to_owned)
        );
        assert_eq!(versions(c"cuGetProcAddress"), GETTERS.map(CStr::to_owned));
        assert_eq!(versions(c"cuMemFreeAsync"), [c"cuMemFreeAsync", c"cuMemFreeAsync_ptsz"].map(CStr::to_owned));
        assert!(versions(c"cuMem").is_empty() && versions(c"cuInit").is_empty());
        assert_eq!(Symbol::of(c"cuMemFree_v2"), Some(Symbol::Row(Function::cuMemFree_v2)));
        assert_eq!([c"cuMemFree", c"urUSMFree", c"cuInit"].map(Symbol::of), [None; 3]);
    }
}
