//! The functions that stood where a hook stands now: those of each adapter, driver or library, by its number among
//! those of its interface.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::{ffi::c_void, ptr::null_mut};

use urscope_schema::api::Function;

/// The most libraries of an interface in a process. The loader of Unified Runtime has adapters of five kinds.
pub const LIBRARIES: usize = 8;

/// The functions. Hooks read them.
pub(crate) static ORIGINALS: [[AtomicPtr<c_void>; Function::COUNT]; LIBRARIES] =
    [const { [const { AtomicPtr::new(null_mut()) }; Function::COUNT] }; LIBRARIES];

/// The offset in [`ORIGINALS`] of a function of library `via`, in bytes.
pub(crate) const fn place(via: usize, function: Function) -> usize {
    (via * Function::COUNT + function as usize) * size_of::<usize>()
}

/// The place of a function of library `via`.
#[inline]
pub(crate) fn slot(via: usize, function: Function) -> Option<&'static AtomicPtr<c_void>> {
    ORIGINALS.get(via)?.get(function as usize)
}

/// The function of library `via`; null if it is not known.
#[inline]
pub(crate) fn original(via: usize, function: Function) -> *mut c_void {
    slot(via, function).map_or(null_mut(), |original| original.load(Ordering::Acquire))
}
