//! The `dlsym` behind urscope's: that of the C library, and the next one, which may be that of another wrapper.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::raw::late_functions::{self, dlvsym};
use crate::raw::{processes::process, symbols::modules::Module};

/// The next `dlsym`, to which the trampoline jumps: that of another wrapper, or the C library's. Never null after
/// `intercept` ([`crate::entry::dlsym`]) has returned.
pub static NEXT_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The C library's own `dlsym`.
pub(crate) static DLSYM_OF_C: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Calls [`resolve`], unless that has to load a library. A process without that library does not call `dlsym`.
pub fn resolve_early() {
    if late_functions::can_look_up() {
        resolve();
    }
}

/// Finds the C library's `dlsym`, and the next one. Rust's standard library calls `dlsym`, so this may run before
/// anything else.
pub fn resolve() -> *mut c_void {
    let known = DLSYM_OF_C.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // The first is the version in all x86-64 glibcs, the second that since dlsym moved into libc.
    let found = [c"GLIBC_2.2.5", c"GLIBC_2.34"].into_iter().map(|version| {
        // SAFETY: `RTLD_NEXT` is always allowed. `dlvsym` is not wrapped.
        unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym", version) }
    });
    let real = found.into_iter().find(|real| !real.is_null()).unwrap_or(null_mut());
    if real.is_null() {
        crate::raw::stderr::say("this C library has no known version of dlsym, so the program cannot run with urscope");
        process::exit_now(127);
    }
    // A wrapper has no symbol version of the C library, so `dlvsym` does not find it.
    // SAFETY: the C library's `dlsym` has this signature; `RTLD_NEXT` is always allowed, and the name is a C string.
    let next = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real)(libc::RTLD_NEXT, c"dlsym".as_ptr()) };
    NEXT_DLSYM.store(if next.is_null() { real } else { next }, Ordering::Release);
    DLSYM_OF_C.store(real, Ordering::Release);
    real
}

/// Calls the next `dlsym`. For `RTLD_NEXT`, it calls the C library's, which searches the libraries after this one;
/// another wrapper would search those after itself.
///
/// # Safety
///
/// `handle` is one of a library, or one of the special ones, as for dlsym(3).
pub unsafe fn real(handle: *mut c_void, name: &CStr) -> *mut c_void {
    let dlsym_of_c = resolve();
    let dlsym = if handle == libc::RTLD_NEXT { dlsym_of_c } else { NEXT_DLSYM.load(Ordering::Acquire) };
    // SAFETY: both are a `dlsym`, with this signature.
    let dlsym = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(dlsym) };
    // SAFETY: the caller's promise, and a C string.
    unsafe { dlsym(handle, name.as_ptr()) }
}

/// The address of `symbol` in a loaded library or its dependencies, as the C library finds it; null if it is not
/// loaded.
pub fn in_library(library: &Path, symbol: &CStr) -> *mut c_void {
    // SAFETY: with RTLD_NOLOAD nothing is loaded, so no code of a library runs.
    let Ok(library) = (unsafe { Library::open(Some(library), libc::RTLD_NOLOAD | RTLD_LAZY) }) else {
        return null_mut();
    };
    let handle = library.into_raw();
    // SAFETY: the C library's `dlsym` has this signature; a handle of a library, and a C string.
    let found = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(resolve())(handle, symbol.as_ptr()) };
    // SAFETY: the handle is given back, as it came.
    drop(unsafe { Library::from_raw(handle) });
    found
}

/// The library or program whose `dlsym` precedes urscope's, if there is one.
pub fn preceding() -> Option<Module> {
    // SAFETY: the C library's `dlsym` has this signature.
    let dlsym = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(resolve()) };
    // SAFETY: `RTLD_DEFAULT` is always allowed, and the name is a C string.
    let first = unsafe { dlsym(libc::RTLD_DEFAULT, c"dlsym".as_ptr()) };
    let first = Module::containing(first as usize)?;
    // The next one does no harm, nor the C library's, which is first if urscope is not preloaded.
    let own = Module::containing(resolve as *const () as usize)?;
    let next = Module::containing(NEXT_DLSYM.load(Ordering::Acquire) as usize)?;
    (first != own && first != next).then_some(first)
}
