//! The runtime's own adapter, passed through: the functions that stood in its table before we did.
//!
//! They may throw (v2 does, where Unified Runtime finds no pool for a device), and the loader in front of us answers for it.

use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

#[allow(clippy::wildcard_imports, reason = "a row may name any role")]
use urscope_schema::{
    api::{Function, UrResult, role::*},
    ur_functions,
};

use crate::call::ADAPTERS;

static ORIGINALS: [[AtomicPtr<c_void>; Function::COUNT]; ADAPTERS] =
    [const { [const { AtomicPtr::new(null_mut()) }; Function::COUNT] }; ADAPTERS];

fn place(via: usize, function: Function) -> Option<&'static AtomicPtr<c_void>> {
    ORIGINALS.get(via)?.get(function as usize)
}

/// Keeps the adapter's own function, before a stand-in takes its slot.
///
/// `original` must be the adapter's implementation of `function`, as its table getter named it. An adapter names the
/// same ones every time; the first word counts.
pub fn keep(via: usize, function: Function, original: *mut c_void) {
    if let Some(place) = place(via, function) {
        let _ = place.compare_exchange(null_mut(), original, Ordering::Release, Ordering::Relaxed);
    }
}

/// Whether the adapter has that entry point.
#[inline]
pub fn has(via: usize, function: Function) -> bool {
    place(via, function).is_some_and(|place| !place.load(Ordering::Acquire).is_null())
}

macro_rules! originals {
    ($(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident;)*) => {
        $(
            #[doc = concat!("The adapter's own `", stringify!($name), "`, or one that answers UNSUPPORTED_FEATURE.")]
            #[inline]
            pub fn $name(via: usize) -> extern "C-unwind" fn($($role),*) -> UrResult {
                extern "C-unwind" fn absent($(_: $role),*) -> UrResult {
                    UrResult::UNSUPPORTED_FEATURE
                }
                let original = place(via, Function::$name).map_or(null_mut(), |place| place.load(Ordering::Acquire));
                if original.is_null() {
                    return absent;
                }
                // SAFETY: `keep` was given the adapter's function of this name, whose C signature is the row's
                // (`ur_api.h` of 2026.2; the functions in the rows kept theirs since 2026.0).
                unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn($($role),*) -> UrResult>(original) }
            }
        )*
    };
}

ur_functions!(originals);
