//! Functions of the C library that glibc before 2.34 has in `libdl.so.2` and `libpthread.so.0`, and those of GCC's
//! unwinder, `libgcc_s.so.1`, which Rust's standard library calls after a panic and for a backtrace.
//!
//! If a library needs them, the dynamic loader loads these libraries into every process, which for the unwinder takes
//! longer than the rest of urscope's start; newer versions of the first two are empty. So the preload library defines
//! [`late_functions`](crate::late_functions): they jump to the real functions, which are found when an adapter
//! appears, or at their first call. The library of a function is loaded then, if the process lacks it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::stderr;

/// Calls the macro `$with` with the number, name, version and library of each function. The version is the first one,
/// which newer versions of glibc also have.
#[macro_export]
#[doc(hidden)]
macro_rules! late_functions {
    ($with:ident) => {
        $with! {
            0 "dladdr" c"dladdr" c"GLIBC_2.2.5" c"libdl.so.2";
            1 "dladdr1" c"dladdr1" c"GLIBC_2.3.3" c"libdl.so.2";
            2 "dlclose" c"dlclose" c"GLIBC_2.2.5" c"libdl.so.2";
            3 "dlerror" c"dlerror" c"GLIBC_2.2.5" c"libdl.so.2";
            4 "dlopen" c"dlopen" c"GLIBC_2.2.5" c"libdl.so.2";
            5 "pthread_getspecific" c"pthread_getspecific" c"GLIBC_2.2.5" c"libpthread.so.0";
            6 "pthread_key_create" c"pthread_key_create" c"GLIBC_2.2.5" c"libpthread.so.0";
            7 "pthread_key_delete" c"pthread_key_delete" c"GLIBC_2.2.5" c"libpthread.so.0";
            8 "pthread_setspecific" c"pthread_setspecific" c"GLIBC_2.2.5" c"libpthread.so.0";
            9 "_Unwind_Backtrace" c"_Unwind_Backtrace" c"GCC_3.3" c"libgcc_s.so.1";
            10 "_Unwind_DeleteException" c"_Unwind_DeleteException" c"GCC_3.0" c"libgcc_s.so.1";
            11 "_Unwind_GetCFA" c"_Unwind_GetCFA" c"GCC_3.3" c"libgcc_s.so.1";
            12 "_Unwind_GetDataRelBase" c"_Unwind_GetDataRelBase" c"GCC_3.0" c"libgcc_s.so.1";
            13 "_Unwind_GetIP" c"_Unwind_GetIP" c"GCC_3.0" c"libgcc_s.so.1";
            14 "_Unwind_GetIPInfo" c"_Unwind_GetIPInfo" c"GCC_4.2.0" c"libgcc_s.so.1";
            15 "_Unwind_GetLanguageSpecificData" c"_Unwind_GetLanguageSpecificData" c"GCC_3.0" c"libgcc_s.so.1";
            16 "_Unwind_GetRegionStart" c"_Unwind_GetRegionStart" c"GCC_3.0" c"libgcc_s.so.1";
            17 "_Unwind_GetTextRelBase" c"_Unwind_GetTextRelBase" c"GCC_3.0" c"libgcc_s.so.1";
            18 "_Unwind_RaiseException" c"_Unwind_RaiseException" c"GCC_3.0" c"libgcc_s.so.1";
            19 "_Unwind_Resume" c"_Unwind_Resume" c"GCC_3.0" c"libgcc_s.so.1";
            20 "_Unwind_SetGR" c"_Unwind_SetGR" c"GCC_3.0" c"libgcc_s.so.1";
            21 "_Unwind_SetIP" c"_Unwind_SetIP" c"GCC_3.0" c"libgcc_s.so.1";
        }
    };
}

macro_rules! names {
    ($($number:literal $symbol:literal $name:literal $version:literal $library:literal;)*) => {
        [$(($name, $version, $library)),*]
    };
}

/// The name, the version and the library of each function.
const NAMES: [(&CStr, &CStr, &CStr); 22] = late_functions!(names);

/// The library of the unwinder. Another library of the process may have its functions, too, so they are looked up in
/// this one only.
const UNWINDER: &CStr = c"libgcc_s.so.1";

/// The functions, in the order of their numbers; null until they are found.
pub static FOUND: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// Finds all of them, before a signal handler or a cancellation needs them.
pub fn find_all() {
    for number in 0..NAMES.len() {
        find(number);
    }
}

/// Finds a function. Without it the process ends with a message.
pub extern "C" fn find(number: usize) -> *mut c_void {
    let (Some(found), Some((name, version, library))) = (FOUND.get(number), NAMES.get(number)) else {
        std::process::abort();
    };
    let known = found.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let function = look_up(name, version, library);
    if function.is_null() {
        stderr::say(if *library == UNWINDER {
            "libgcc_s.so.1 is missing or too old, so the program cannot run with urscope"
        } else {
            "this C library lacks a function for threads or libraries, so the program cannot run with urscope"
        });
        std::process::abort();
    }
    found.store(function, Ordering::Relaxed);
    function
}

/// A function; null if there is none.
fn look_up(name: &CStr, version: &CStr, library: &CStr) -> *mut c_void {
    if library == UNWINDER {
        // SAFETY: a C string; the constructors of this library are GCC's.
        let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
        // SAFETY: the library, which is never closed.
        return if library.is_null() { library } else { unsafe { dlvsym(library, name, version) } };
    }
    // SAFETY: `RTLD_DEFAULT` is always allowed.
    let function = unsafe { dlvsym(libc::RTLD_DEFAULT, name, version) };
    // SAFETY: the library, which is never closed, or null, which is `RTLD_DEFAULT`.
    if function.is_null() { unsafe { dlvsym(load(library), name, version) } } else { function }
}

type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// `dlvsym(3)`, which finds all other functions; null if the library has no such symbol.
///
/// # Safety
///
/// `handle` is that of a library, or a special one. The calling library is this one.
pub unsafe fn dlvsym(handle: *mut c_void, name: &CStr, version: &CStr) -> *mut c_void {
    let function = from_process().or_else(from_libdl);
    // SAFETY: the caller's promise, and C strings.
    function.map_or(null_mut(), |dlvsym| unsafe { dlvsym(handle, name.as_ptr(), version.as_ptr()) })
}

/// The address of a weak symbol, which is null if the process has none.
macro_rules! weak {
    ($symbol:literal) => {{
        let address: *mut c_void;
        // SAFETY: it reads the address from the dynamic loader, which no longer changes.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $symbol),
                concat!("mov {address}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                address = out(reg) address,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(super) use weak;

/// The function, if the process had it when this library was loaded.
fn from_process() -> Option<Dlvsym> {
    let address = weak!("dlvsym");
    // SAFETY: null, or the function of that name, which has this signature.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlvsym>>(address) }
}

/// The function of a glibc before 2.34, whose `libdl.so.2` is loaded now.
fn from_libdl() -> Option<Dlvsym> {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    type Find = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

    if FOUND.load(Ordering::Relaxed).is_null() {
        let find = weak!("__libc_dlsym");
        // SAFETY: null, or the C library's internal function, which always had this signature.
        let find = unsafe { std::mem::transmute::<*mut c_void, Option<Find>>(find) }?;
        let library = load(c"libdl.so.2");
        if !library.is_null() {
            // SAFETY: the library, which is never closed, and a C string.
            FOUND.store(unsafe { find(library, c"dlvsym".as_ptr()) }, Ordering::Relaxed);
        }
    }
    // SAFETY: as in `from_process`.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlvsym>>(FOUND.load(Ordering::Relaxed)) }
}

/// Loads a library of a glibc before 2.34 by the C library's internal function; null if there is none.
fn load(library: &CStr) -> *mut c_void {
    type Load = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    /// `__RTLD_DLOPEN` of glibc's `dlfcn.h`: a call loads the library, and not a dependency.
    const BY_CALL: c_int = c_int::MIN;

    let load = weak!("__libc_dlopen_mode");
    // SAFETY: null, or that function, which always had this signature.
    let load = unsafe { std::mem::transmute::<*mut c_void, Option<Load>>(load) };
    // `RTLD_GLOBAL`, so that `RTLD_NEXT` finds its functions.
    let how = libc::RTLD_NOW | libc::RTLD_GLOBAL | BY_CALL;
    // SAFETY: a C string; the constructors of the library are those of the C library.
    load.map_or(null_mut(), |load| unsafe { load(library.as_ptr(), how) })
}

/// Whether symbols can be looked up without loading a library, as with glibc 2.34 and later.
pub fn can_look_up() -> bool {
    from_process().is_some()
}

/// The next function of a name, if [`can_look_up`] is false; null if this glibc has no such internal function.
///
/// # Safety
///
/// Every C library has a function of this name: without one, the process ends.
pub unsafe fn next_without_lookup(name: &CStr) -> *mut c_void {
    type Find = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void) -> *mut c_void;

    let find = weak!("_dl_sym");
    // SAFETY: null, or the function that `dlsym(3)` calls in glibc before 2.34, which always had this signature.
    let find = unsafe { std::mem::transmute::<*mut c_void, Option<Find>>(find) };
    let here = next_without_lookup as *const c_void;
    // SAFETY: `RTLD_NEXT` is always allowed, with an address in this library, and a C string.
    find.map_or(null_mut(), |find| unsafe { find(libc::RTLD_NEXT, name.as_ptr(), here) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_those_of_the_c_library() {
        find_all();
        let linked =
            [libc::dladdr as *const c_void, libc::dlopen as *const c_void, libc::pthread_key_create as *const c_void];
        for (number, linked) in [0, 4, 6].into_iter().zip(linked) {
            let found = find(number);
            assert_eq!(found.cast_const(), FOUND[number].load(Ordering::Relaxed).cast_const());
            let module = crate::raw::symbols::modules::Module::containing;
            assert_eq!(module(found as usize), module(linked as usize), "{:?}", NAMES[number].0);
        }
    }

    #[test]
    fn a_symbol_of_another_version_is_not_found() {
        // SAFETY: `RTLD_DEFAULT` is always allowed.
        let of = |name, version| unsafe { dlvsym(libc::RTLD_DEFAULT, name, version) };
        assert!(!of(c"malloc", c"GLIBC_2.2.5").is_null());
        assert!(of(c"malloc", c"GLIBC_2.3").is_null());
        assert!(of(c"no function has this name", c"GLIBC_2.2.5").is_null());
    }
}
