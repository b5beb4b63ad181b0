//! `dlsym`, which urscope wraps to see when a loader asks an adapter or a driver for a table, and a program for a function
//! of the CUDA driver.
//!
//! The result of `dlsym(RTLD_NEXT, …)` depends on the return address, so other lookups are passed on by a jump. The
//! trampoline in the preload library calls [`intercept`].

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use urscope_schema::api::{LEVEL_ZERO, Table};

use super::real_dlsym::{real, resolve};
use super::{cuda, ddi, level_zero};
use crate::knobs;

/// In a process that ran before this library was loaded, changes the C library's `dlsym` to jump to urscope's, so that
/// later loaders are noticed.
#[cfg(feature = "frida-gum")]
pub fn replace_where_late() {
    use std::sync::atomic::Ordering;

    use frida_gum::{Gum, NativePointer, interceptor::Interceptor};

    use super::real_dlsym::{DLSYM_OF_C, NEXT_DLSYM};
    use crate::raw::symbols::modules::{self, Module};

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
