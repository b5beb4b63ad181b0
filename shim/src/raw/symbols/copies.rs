//! Copies of urscope's library in one process, as when a script puts another installation in front of `LD_PRELOAD`: the first one works,
//! and the others pass on what they see.

use std::{ffi::c_void, sync::atomic::AtomicU8};

use crate::raw::late_functions::weak;

/// An address that each copy has of its own. The preload library exports a function that returns it, `urscope_copy`.
pub fn own() -> usize {
    static OWN: AtomicU8 = AtomicU8::new(0);
    &raw const OWN as usize
}

/// Whether another copy comes before this one where the dynamic loader searches for symbols.
///
/// Two copies would change the same tables, and call each other for ever.
pub fn is_behind_another() -> bool {
    type Own = extern "C" fn() -> usize;
    let first = weak!("urscope_copy");
    // SAFETY: null, or the function of that name of the first copy, which has this signature.
    let first = unsafe { std::mem::transmute::<*mut c_void, Option<Own>>(first) };
    first.is_some_and(|first| first() != own())
}
