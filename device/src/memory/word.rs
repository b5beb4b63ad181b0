//! Words in memory of the device that the application, kernels and other processes may change at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Retained, lookup, reservation, retain};
use crate::ffi::result::{Outcome, ZeResult};

/// A word of 8 bytes. Its memory stays mapped while the value lives.
pub(crate) struct Word {
    address: usize,
    _retained: Retained,
}

impl Word {
    /// The word at an address: `INVALID_ARGUMENT` unless it is memory of the device, and the address a multiple of 8.
    pub(crate) fn at(address: usize) -> Outcome<Self> {
        let is_memory = lookup::find(address).is_some() || reservation::view(address).is_some();
        let retained = retain(address).filter(|_| is_memory && address.is_multiple_of(align_of::<AtomicU64>()));
        Ok(Self { address, _retained: retained.ok_or(ZeResult::INVALID_ARGUMENT)? })
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn load(&self) -> u64 {
        self.atomic().load(Ordering::Acquire)
    }

    /// Adds to its value atomically.
    pub(crate) fn add(&self, increment: u64) {
        self.atomic().fetch_add(increment, Ordering::AcqRel);
    }

    fn atomic(&self) -> &AtomicU64 {
        // SAFETY: the reference keeps the memory mapped, which consists of whole pages, so that 8 aligned
        // bytes lie in it. All bytes are a valid number, and others change them atomically.
        unsafe { AtomicU64::from_ptr(self.address as *mut u64) }
    }
}
