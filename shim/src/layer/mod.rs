//! The layers: what looks at a call before and after the backend does the work.
//!
//! A layer may report; it must never change what a correct program observes, hold a lock across the real call, or
//! let anything but its own bookkeeping fail.

use urscope_schema::call::{Enter, Exit};

pub mod trace;

/// What a layer can do with a call. Both are called on the thread of the call, from many threads at once.
pub trait Layer: Sync {
    /// The call begins.
    fn enter(&self, enter: &Enter);

    /// The call has returned.
    fn exit(&self, exit: &Exit);
}
