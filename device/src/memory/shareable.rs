//! What handles and descriptors can be requested for: allocations, and physical memory.

use std::sync::Arc;

use super::{allocation::Allocation, lookup, physical::PhysicalMemory, reservation};
use crate::ffi::handles::{Handle, Object};
use crate::shared_memory::{own_file::Description, segment::Span};

/// Memory of this process that another one may get.
pub(super) enum Shareable {
    Allocation(Arc<Allocation>),
    /// Physical memory, wherever it is mapped.
    Physical(Arc<PhysicalMemory>),
}

impl Shareable {
    /// The allocation, or the mapped physical memory, that contains an address.
    pub(super) fn at(address: usize) -> Option<Self> {
        let allocation = lookup::find(address).map(Self::Allocation);
        allocation.or_else(|| reservation::view(address).map(|view| Self::Physical(view.physical)))
    }

    /// The physical memory that has this word as its handle.
    pub(super) fn of_handle(word: usize) -> Option<Self> {
        Handle::from_word(word).get().ok().map(Self::Physical)
    }

    /// The memory whose file has this descriptor and holds nothing else.
    pub(super) fn by_descriptor(number: i32) -> Option<Self> {
        let physical = || {
            let mut all = PhysicalMemory::all().into_iter().map(Self::Physical);
            all.find(|memory| memory.own_span().is_some_and(|span| span.descriptor() == number))
        };
        lookup::exported(number).map(Self::Allocation).or_else(physical)
    }

    /// Its range of a file. `None` for memory that was opened or imported.
    pub(super) fn span(&self) -> Option<&Span> {
        match self {
            Self::Allocation(allocation) => allocation.span(),
            Self::Physical(physical) => physical.span(),
        }
    }

    /// Its range, if the file holds nothing else.
    pub(super) fn own_span(&self) -> Option<&Span> {
        self.span().filter(|span| span.has_own_file())
    }

    pub(super) fn description(&self) -> Description {
        match self {
            Self::Allocation(allocation) => allocation.description(),
            Self::Physical(physical) => physical.description(),
        }
    }
}
