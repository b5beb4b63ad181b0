//! `dlsym`, which urscope wraps to notice when a loader asks an adapter or a driver for a table.
//!
//! The result of `dlsym(RTLD_NEXT, …)` depends on the return address, so all other lookups must be passed on by a
//! jump and not by a call. The trampoline for that is in the preload library, and asks [`intercept`].

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use urscope_schema::api::Table;

use super::{ddi, level_zero};
use crate::{
    knobs,
    raw::{
        late_functions::{self, dlvsym},
        process,
        symbols::modules::Module,
    },
};

/// The `dlsym` behind ours, for the trampoline to jump to: that of another library that wraps it, or the C library's
/// own. Never null once [`intercept`] has returned.
pub static NEXT_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The C library's own `dlsym`.
static DLSYM_OF_C: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Does what [`resolve`] does, unless it takes a library that the process lacks. Without that, nobody calls `dlsym`.
pub fn resolve_early() {
    if late_functions::can_look_up() {
        resolve();
    }
}

/// Finds the C library's `dlsym`, and the one behind ours. Rust's standard library calls `dlsym`, so this may run
/// before anything else.
pub fn resolve() -> *mut c_void {
    let known = DLSYM_OF_C.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // The first is the version of all x86-64 glibcs, the second the one since dlsym moved into libc itself.
    let found = [c"GLIBC_2.2.5", c"GLIBC_2.34"].into_iter().map(|version| {
        // SAFETY: `RTLD_NEXT` is always allowed. It is not `dlsym`, so it does not come back to us.
        unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym", version) }
    });
    let real = found.into_iter().find(|real| !real.is_null()).unwrap_or(null_mut());
    if real.is_null() {
        crate::raw::stderr::say("this C library has no known version of dlsym, so the program cannot run with urscope");
        process::exit_now(127);
    }
    // A wrapper has no version of the C library, so `dlvsym` passes over it.
    // SAFETY: the C library's `dlsym` has this signature; `RTLD_NEXT` is always allowed, and the name is a C string.
    let next = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real)(libc::RTLD_NEXT, c"dlsym".as_ptr()) };
    NEXT_DLSYM.store(if next.is_null() { real } else { next }, Ordering::Release);
    DLSYM_OF_C.store(real, Ordering::Release);
    real
}

/// The C library's `dlsym` calls ours from now on, and this does what it did before.
#[cfg(feature = "frida-gum")]
pub(super) fn set_dlsym_of_c(dlsym_of_c: *mut c_void) {
    NEXT_DLSYM.store(dlsym_of_c, Ordering::Release);
    DLSYM_OF_C.store(dlsym_of_c, Ordering::Release);
}

/// Asks the `dlsym` behind ours. With `RTLD_NEXT` it is the C library's, which searches the libraries behind ours:
/// another wrapper would search those behind itself.
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

/// The library or program whose `dlsym` other libraries find instead of ours, if there is one.
pub fn preceding() -> Option<Module> {
    // SAFETY: the C library's `dlsym` has this signature.
    let dlsym = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(resolve()) };
    // SAFETY: `RTLD_DEFAULT` is always allowed, and the name is a C string.
    let first = unsafe { dlsym(libc::RTLD_DEFAULT, c"dlsym".as_ptr()) };
    let first = Module::of(first as usize)?;
    // One behind ours is not in the way, nor the C library's, which is the first one where ours is not preloaded.
    let own = Module::of(intercept as *const () as usize)?;
    let next = Module::of(NEXT_DLSYM.load(Ordering::Acquire) as usize)?;
    (first != own && first != next).then_some(first)
}

/// What `dlsym(handle, name)` is to return; null where the real one is to answer.
///
/// # Safety
///
/// `handle` and `name` are those of a call of dlsym(3); `name` may be null.
pub unsafe extern "C" fn intercept(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    resolve();
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    // Almost all lookups are for something else.
    let begins = |begin: &[u8]| name.to_bytes().starts_with(begin);
    #[cfg(feature = "frida-gum")]
    if !super::inline::notice() {
        return null_mut();
    }
    if !(begins(b"urGet") || begins(b"zeGet")) || handle == libc::RTLD_NEXT || knobs::is_excluded() {
        return null_mut();
    }
    match Table::of_getter(name.to_bytes()) {
        // SAFETY: the caller's promise; what is found under the name of a getter is one.
        Some(table) if table.is_level_zero() => unsafe { level_zero::getter(table, real(handle, name)) },
        // SAFETY: as above.
        Some(table) => unsafe { ddi::getter(table, real(handle, name)) },
        None => null_mut(),
    }
}
