//! The runtime's own adapters: the functions that were in their tables before urscope's hooks.
//!
//! The number in `via` identifies an adapter ([`registry`]). Its functions may throw (v2 does if Unified Runtime
//! finds no pool for a device); the loader catches that. Nothing here may call a layer.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::{ffi::c_void, ptr::null_mut};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, UrResult, role::*};
use urscope_schema::ur_functions;

use crate::raw::args::Arg;

pub mod device_info;
pub mod registry;

pub use registry::ADAPTERS;

pub(crate) static ORIGINALS: [[AtomicPtr<c_void>; Function::COUNT]; ADAPTERS] =
    [const { [const { AtomicPtr::new(null_mut()) }; Function::COUNT] }; ADAPTERS];

/// The address of `$module::$function` for adapter `$via`, as an `Option`: the number is a constant of the function,
/// the last one.
macro_rules! for_adapter {
    ($module:ident::$function:ident $(<$table:literal>)?, $via:expr) => {
        match $via {
            0 => Some($module::$function::<$($table,)? 0> as *mut std::ffi::c_void),
            1 => Some($module::$function::<$($table,)? 1> as *mut std::ffi::c_void),
            2 => Some($module::$function::<$($table,)? 2> as *mut std::ffi::c_void),
            3 => Some($module::$function::<$($table,)? 3> as *mut std::ffi::c_void),
            4 => Some($module::$function::<$($table,)? 4> as *mut std::ffi::c_void),
            5 => Some($module::$function::<$($table,)? 5> as *mut std::ffi::c_void),
            6 => Some($module::$function::<$($table,)? 6> as *mut std::ffi::c_void),
            7 => Some($module::$function::<$($table,)? 7> as *mut std::ffi::c_void),
            _ => None,
        }
    };
}
pub(crate) use for_adapter;

/// The offset in [`ORIGINALS`] of a function of adapter `via`, in bytes.
pub(crate) const fn place(via: usize, function: Function) -> usize {
    (via * Function::COUNT + function as usize) * size_of::<usize>()
}

fn original(via: usize, function: Function) -> Option<&'static AtomicPtr<c_void>> {
    ORIGINALS.get(via)?.get(function as usize)
}

/// Stores the adapter's own function before a hook replaces it. An adapter has the same functions every time; the
/// first one is stored.
///
/// # Safety
///
/// `implementation` is the adapter's implementation of `function`, as its table getter named it.
pub unsafe fn store(via: usize, function: Function, implementation: *mut c_void) {
    if let Some(original) = original(via, function) {
        let _ = original.compare_exchange(null_mut(), implementation, Ordering::Release, Ordering::Relaxed);
    }
}

/// Whether the adapter has a function.
#[inline]
pub fn has(via: usize, function: Function) -> bool {
    original(via, function).is_some_and(|original| !original.load(Ordering::Acquire).is_null())
}

/// The adapter's own function, from [`store`].
pub fn implementation(via: usize, function: Function) -> Option<*mut c_void> {
    original(via, function)
        .map(|original| original.load(Ordering::Acquire))
        .filter(|implementation| !implementation.is_null())
}

macro_rules! originals {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        $(
            #[doc = concat!("The adapter's own `", stringify!($name), "`, or one that answers UNSUPPORTED_FEATURE.")]
            #[inline]
            pub fn $name(via: usize) -> extern "C-unwind" fn($(Arg<$role>),*) -> UrResult {
                extern "C-unwind" fn absent($(_: Arg<$role>),*) -> UrResult {
                    UrResult::UNSUPPORTED_FEATURE
                }
                let original = original(via, Function::$name).map_or(null_mut(), |known| known.load(Ordering::Acquire));
                if original.is_null() {
                    return absent;
                }
                // SAFETY: `store` got the adapter's function of this name, whose C signature is the row's (`ur_api.h`):
                // an adapter with another one keeps its function (`Function::former_signature`).
                unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> UrResult>(original) }
            }
        )*
    };
}

ur_functions!(originals);
