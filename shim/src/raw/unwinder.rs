//! The unwinder of GCC, `libgcc_s.so.1`, which Rust's standard library calls after a panic and for a backtrace.
//!
//! If a library needs it, the dynamic loader loads it into every process, which takes longer than the rest of
//! urscope's start. So the preload library defines [`unwinder_functions`]: they jump to the real functions, which are
//! found when an adapter appears, or at their first call. A C++ program has loaded the unwinder by then.

use std::{
    ffi::{CStr, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::{late_functions::dlvsym, stderr};

/// Calls the macro `$with` with the number, the name and the version of each function of the unwinder that the
/// standard library calls.
#[macro_export]
#[doc(hidden)]
macro_rules! unwinder_functions {
    ($with:ident) => {
        $with! {
            0 "_Unwind_Backtrace" c"_Unwind_Backtrace" c"GCC_3.3";
            1 "_Unwind_DeleteException" c"_Unwind_DeleteException" c"GCC_3.0";
            2 "_Unwind_GetCFA" c"_Unwind_GetCFA" c"GCC_3.3";
            3 "_Unwind_GetDataRelBase" c"_Unwind_GetDataRelBase" c"GCC_3.0";
            4 "_Unwind_GetIP" c"_Unwind_GetIP" c"GCC_3.0";
            5 "_Unwind_GetIPInfo" c"_Unwind_GetIPInfo" c"GCC_4.2.0";
            6 "_Unwind_GetLanguageSpecificData" c"_Unwind_GetLanguageSpecificData" c"GCC_3.0";
            7 "_Unwind_GetRegionStart" c"_Unwind_GetRegionStart" c"GCC_3.0";
            8 "_Unwind_GetTextRelBase" c"_Unwind_GetTextRelBase" c"GCC_3.0";
            9 "_Unwind_RaiseException" c"_Unwind_RaiseException" c"GCC_3.0";
            10 "_Unwind_Resume" c"_Unwind_Resume" c"GCC_3.0";
            11 "_Unwind_SetGR" c"_Unwind_SetGR" c"GCC_3.0";
            12 "_Unwind_SetIP" c"_Unwind_SetIP" c"GCC_3.0";
        }
    };
}

macro_rules! names {
    ($($number:literal $symbol:literal $name:literal $version:literal;)*) => {
        [$(($name, $version)),*]
    };
}

/// The name and the version of each function.
const NAMES: [(&CStr, &CStr); 13] = unwinder_functions!(names);

/// The functions, in the order of their numbers; null until [`find`] has returned.
pub static FOUND: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// Finds the functions. Without them the process ends with a message, as a panic could not unwind.
pub extern "C" fn find() {
    if FOUND.iter().all(|found| !found.load(Ordering::Relaxed).is_null()) {
        return;
    }
    // SAFETY: a C string; the constructors of this library are GCC's.
    let library = unsafe { libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_NOW) };
    for (found, (name, version)) in FOUND.iter().zip(NAMES) {
        let function = if library.is_null() {
            null_mut()
        } else {
            // SAFETY: the library, which is never closed.
            unsafe { dlvsym(library, name, version) }
        };
        if function.is_null() {
            stderr::say("libgcc_s.so.1 is missing or too old, so the program cannot run with urscope");
            std::process::abort();
        }
        found.store(function, Ordering::Relaxed);
    }
}
