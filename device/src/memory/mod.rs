//! Memory: where it lies, what is allocated, and how another process gets at it.
//!
//! `allocation` is what an application sees, `map` finds the allocation of a pointer, `alloc` and `ipc` are the entry
//! points. `physical` is memory without an address, `reservation` addresses without memory, and `virtual_memory` has the
//! entry points that put one into the other.

pub(crate) mod alloc;
pub(crate) mod ipc;
pub(crate) mod physical;
pub(crate) mod virtual_memory;

mod allocation;
mod map;
mod reservation;

use std::sync::Arc;

use allocation::Allocation;
use reservation::Use;

/// What keeps the memory at an address there, for work in flight. Held for its drop.
pub(crate) enum Kept {
    /// An allocation.
    Allocation { _held: Arc<Allocation> },
    /// A reservation, with all that is mapped in it.
    Reservation { _held: Use },
}

/// Keeps the memory at `address` there, if it is ours.
pub(crate) fn keep(address: usize) -> Option<Kept> {
    if let Some(allocation) = map::find(address) {
        return Some(Kept::Allocation { _held: allocation });
    }
    reservation::find(address).map(|found| Kept::Reservation { _held: found.in_use() })
}
