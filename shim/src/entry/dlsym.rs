//! `dlsym`, which urscope wraps to see when a loader asks an adapter or a driver for a table, and a program for a function
//! of the CUDA driver.
//!
//! The result of `dlsym(RTLD_NEXT, …)` depends on the return address, so other lookups are passed on by a jump. The
//! trampoline in the preload library calls [`intercept`].

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_LAZY};
use urscope_schema::api::{LEVEL_ZERO, Table};

use super::{cuda, ddi, level_zero};
use crate::knobs;
use crate::raw::late_functions::{self, dlvsym};
use crate::raw::{processes::process, symbols::modules::Module};

/// The next `dlsym`, to which the trampoline jumps: that of another wrapper, or the C library's. Never null after
/// [`intercept`] has returned.
pub static NEXT_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The C library's own `dlsym`.
static DLSYM_OF_C: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

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

/// In a process that ran before this library was loaded, changes the C library's `dlsym` to jump to urscope's, so that
/// later loaders are noticed.
#[cfg(feature = "frida-gum")]
pub fn replace_where_late() {
    use frida_gum::{Gum, NativePointer, interceptor::Interceptor};

    use crate::raw::symbols::modules;

    if !modules::came_late() {
        return;
    }
    let of_c = resolve();
    let ours = Module::of(intercept as *const () as usize).and_then(|ours| ours.address_of(c"dlsym"));
    let Some(ours) = ours else { return };
    let gum = Gum::obtain();
    let mut interceptor = Interceptor::obtain(&gum);
    let ours = NativePointer(std::ptr::with_exposed_provenance_mut::<c_void>(ours));
    interceptor.begin_transaction();
    if let Ok(NativePointer(original)) = interceptor.replace_fast(NativePointer(of_c), ours) {
        NEXT_DLSYM.store(original, Ordering::Release);
        DLSYM_OF_C.store(original, Ordering::Release);
    }
    interceptor.end_transaction();
    std::mem::forget(interceptor);
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

/// The address of `symbol` in a loaded library or its dependencies, as the C library finds it; null if it is not loaded.
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
    let first = Module::of(first as usize)?;
    // The next one does no harm, nor the C library's, which is first if urscope is not preloaded.
    let own = Module::of(intercept as *const () as usize)?;
    let next = Module::of(NEXT_DLSYM.load(Ordering::Acquire) as usize)?;
    (first != own && first != next).then_some(first)
}

/// A name that no library exports, for `dlsym` to report instead of one that only urscope does.
const NOT_LOADED: &CStr = c"a function of libcuda.so.1, which is not loaded";

/// The result of `dlsym(handle, name)`; null if the real one must be called, with the name at `asked`.
///
/// # Safety
///
/// `handle` and `name` are those of a call of dlsym(3); `name` may be null. `asked` holds it.
pub unsafe extern "C" fn intercept(handle: *mut c_void, name: *const c_char, asked: &mut *const c_char) -> *mut c_void {
    resolve();
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    // Almost all lookups are for other names.
    let begins = |begin: &[u8]| name.to_bytes().starts_with(begin);
    #[cfg(feature = "frida-gum")]
    if !super::inline::notice() {
        return null_mut();
    }
    let is_other = !(begins(b"urGet") || begins(b"zeGet") || begins(b"cu"));
    if is_other || handle == libc::RTLD_NEXT || knobs::is_excluded() {
        return null_mut();
    }
    if begins(b"cu") {
        let Some(symbol) = cuda::Symbol::of(name) else { return null_mut() };
        // SAFETY: the caller's promise.
        let found = cuda::looked_up(symbol, unsafe { real(handle, name) });
        if found.is_none() {
            *asked = NOT_LOADED.as_ptr();
        }
        return found.unwrap_or(null_mut());
    }
    match Table::of_getter(name.to_bytes()) {
        // SAFETY: the caller's promise; the symbol of a getter is one.
        Some(table) if table.interface() == &LEVEL_ZERO => unsafe { level_zero::getter(table, real(handle, name)) },
        // SAFETY: as above.
        Some(table) => unsafe { ddi::getter(table, real(handle, name)) },
        None => null_mut(),
    }
}
