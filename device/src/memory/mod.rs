//! Memory: allocations, physical memory, virtual memory, and sharing with other processes.
//!
//! `allocation` is what an application gets, `lookup` finds the allocation of a pointer, `alloc`,
//! `atomics` and `ipc` are entry points, and `shareable` is what they export. `physical` is memory
//! without an address, `reservation` is address space without memory, and `virtual_memory` has the
//! entry points that map one into the other. Must never unmap memory that work in flight refers to.

pub(crate) mod alloc;
pub(crate) mod atomics;
pub(crate) mod ipc;
pub(crate) mod physical;
pub(crate) mod virtual_memory;
#[expect(unsafe_code, reason = "reads and changes words of the application's memory")]
pub(crate) mod word;

mod allocation;
mod lookup;
mod reservation;
mod shareable;

use std::sync::Arc;

pub use allocation::{Allocation, Kind};
pub use reservation::Reservation;
use reservation::ReservationRef;

/// Keeps memory mapped for work in flight, until it is dropped.
#[derive(Clone)]
pub(crate) enum Retained {
    /// An allocation.
    Allocation(Arc<Allocation>),
    /// A reservation, with everything that is mapped in it.
    Reservation(ReservationRef),
}

impl Retained {
    /// Where `length` bytes at an address lie: the inode of the file, and the offset there. `None` if no other process
    /// may have the memory, or if a reservation shows them in several mappings.
    pub(crate) fn shared_at(&self, address: usize, length: usize) -> Option<(u64, u64)> {
        match self {
            Self::Allocation(allocation) => {
                let (file, start) = allocation.shared_range()?;
                Some((file, start + address.checked_sub(allocation.base())? as u64))
            }
            Self::Reservation(reservation) => reservation.shared_at(address, length),
        }
    }

    /// Likewise for all bytes from an address on to the end of the memory, or of what is mapped there, with their
    /// number.
    pub(crate) fn shared_from(&self, address: usize) -> Option<(u64, u64, u64)> {
        let end = match self {
            Self::Allocation(allocation) => allocation.base() + allocation.size,
            Self::Reservation(reservation) => reservation.end_of_range(address)?,
        };
        let length = end.checked_sub(address)?;
        self.shared_at(address, length).map(|(file, offset)| (file, offset, length as u64))
    }
}

/// Keeps the memory at `address` mapped. `None` if it is not memory of the device.
pub(crate) fn retain(address: usize) -> Option<Retained> {
    if let Some(allocation) = lookup::find(address) {
        return Some(Retained::Allocation(allocation));
    }
    reservation::find(address).map(|found| Retained::Reservation(found.retain()))
}
