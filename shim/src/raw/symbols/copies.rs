//! Copies of urscope's library in one process, as when a script puts another installation in front of `LD_PRELOAD`: the
//! first one works, and the others pass on what they see.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// An address that each copy has of its own. The preload library exports a function that returns it, `urscope_copy`.
pub fn own() -> usize {
    static OWN: AtomicU8 = AtomicU8::new(0);
    &raw const OWN as usize
}

/// The address of the first copy; 0 if it is not known.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// Makes the address of the copy known that comes first where the dynamic loader searches for symbols.
pub fn note_first(address: usize) {
    FIRST.store(address, Ordering::Relaxed);
}

/// Whether another copy comes before this one where the dynamic loader searches for symbols.
///
/// Two copies would change the same tables, and call each other for ever.
pub fn is_behind_another() -> bool {
    ![0, own()].contains(&FIRST.load(Ordering::Relaxed))
}
