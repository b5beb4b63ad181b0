//! The runtime's own adapters: the functions that were in their tables before urscope's hooks.
//!
//! The number in `via` identifies an adapter ([`registry`]). Its functions may throw (v2 does if Unified Runtime
//! finds no pool for a device); the loader catches that. Nothing here may call a layer.

use std::sync::atomic::Ordering;
use std::{ffi::c_void, ptr::null_mut};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::api::{Function, ResultCode, role::*};
use urscope_schema::ur_functions;

use crate::raw::args::{Arg, row::Callee};
use crate::raw::originals::{self, original};

pub mod device_info;
pub mod registry;

pub use registry::ADAPTERS;

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

/// Stores the adapter's own function before a hook replaces it. An adapter has the same functions every time; the
/// first one is stored.
///
/// # Safety
///
/// `implementation` is the adapter's implementation of `function`, as its table getter named it.
pub unsafe fn store(via: usize, function: Function, implementation: *mut c_void) {
    if let Some(original) = originals::slot(via, function) {
        let _ = original.compare_exchange(null_mut(), implementation, Ordering::Release, Ordering::Relaxed);
    }
}

/// Whether the adapter has a function.
#[inline]
pub fn has(via: usize, function: Function) -> bool {
    !original(via, function).is_null()
}

/// The adapter's own function, from [`store`].
pub fn implementation(via: usize, function: Function) -> Option<*mut c_void> {
    Some(original(via, function)).filter(|implementation| !implementation.is_null())
}

/// What carries out a call of the adapter's own function, or answers UNSUPPORTED_FEATURE.
#[inline]
pub fn callee(via: usize, function: Function) -> Callee {
    let implementation = original(via, function);
    if implementation.is_null() { ABSENT } else { Callee::Function(implementation) }
}

/// Answers UNSUPPORTED_FEATURE.
pub const ABSENT: Callee = Callee::Own(|_, _, _| ResultCode::UNSUPPORTED_FEATURE, Function::urUSMFree, 0);

macro_rules! originals {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        $(
            #[doc = concat!("The adapter's own `", stringify!($name), "`, or one that answers UNSUPPORTED_FEATURE.")]
            #[inline]
            pub fn $name(via: usize) -> extern "C-unwind" fn($(Arg<$role>),*) -> ResultCode {
                extern "C-unwind" fn absent($(_: Arg<$role>),*) -> ResultCode {
                    ResultCode::UNSUPPORTED_FEATURE
                }
                let original = original(via, Function::$name);
                if original.is_null() {
                    return absent;
                }
                // SAFETY: `store` got the adapter's function of this name, whose C signature is the row's (`ur_api.h`):
                // an adapter with another one keeps its function (`Function::former_signature`).
                unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> ResultCode>(original) }
            }
        )*
    };
}

ur_functions!(originals);
