//! `dlsym`, which urscope wraps to see when a loader asks an adapter or a driver for a table, and a program for a
//! function that is hooked.
//!
//! The result of `dlsym(RTLD_NEXT, …)` depends on the return address, so other lookups are passed on by a jump. The
//! trampoline in the preload library calls [`intercept`].

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use crate::interface::{self, Lookup};
use crate::knobs;
use crate::raw::symbols::real_dlsym::{real, resolve};

/// In a process that ran before this library was loaded, changes the C library's `dlsym` to jump to urscope's, so that
/// later loaders are noticed.
#[cfg(feature = "frida-gum")]
pub fn replace_where_late() {
    use std::sync::atomic::Ordering;

    use frida_gum::{Gum, NativePointer, interceptor::Interceptor};

    use crate::raw::symbols::modules::{self, Module};
    use crate::raw::symbols::real_dlsym::{DLSYM_OF_C, NEXT_DLSYM};

    if !modules::came_late() {
        return;
    }
    let of_c = resolve();
    let ours = Module::containing(intercept as *const () as usize).and_then(|ours| ours.address_of(c"dlsym"));
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
const NOT_LOADED: &CStr = c"a function of a library that is not loaded";

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
    #[cfg(feature = "frida-gum")]
    if !interface::unified_runtime::inline::notice() {
        return null_mut();
    }
    // Almost all lookups are for other names.
    let is_other = !interface::PREFIXES.iter().any(|begin| name.to_bytes().starts_with(begin));
    if is_other || handle == libc::RTLD_NEXT || knobs::is_excluded() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let found = || unsafe { real(handle, name) };
    match interface::all().find_map(|interface| interface.looked_up(name, &found)) {
        Some(Lookup::Found(address)) => address,
        Some(Lookup::Missing) => {
            *asked = NOT_LOADED.as_ptr();
            null_mut()
        }
        None => null_mut(),
    }
}
