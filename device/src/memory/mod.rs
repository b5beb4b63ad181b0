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
mod lookup;
mod reservation;

use std::sync::Arc;

use allocation::Allocation;
use reservation::ReservationRef;

/// What keeps the memory at an address there, for work in flight. Held for its drop.
pub(crate) enum Retained {
    /// An allocation.
    Allocation { _reference: Arc<Allocation> },
    /// A reservation, with all that is mapped in it.
    Reservation { _reference: ReservationRef },
}

/// Keeps the memory at `address` there, if it is ours.
pub(crate) fn retain(address: usize) -> Option<Retained> {
    if let Some(allocation) = lookup::find(address) {
        return Some(Retained::Allocation { _reference: allocation });
    }
    reservation::find(address).map(|found| Retained::Reservation { _reference: found.retain() })
}
