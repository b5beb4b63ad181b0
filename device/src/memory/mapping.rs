//! A stretch of this process's address space that shows part of a shared-memory file.
//!
//! Below segments and allocations. Must never outlive its unmapping: whoever holds the value may use the range.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use super::PAGE;
use crate::result::{Answer, ZeResult};

/// Mapped pages, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of `file` from `offset`, shared, readable and writable, at an address that is a multiple of
    /// `alignment` (a power of 2). Length and offset are multiples of the page size.
    pub(crate) fn shared(file: BorrowedFd<'_>, offset: u64, length: usize, alignment: usize) -> Answer<Self> {
        let base = if alignment <= PAGE { 0 } else { reserve_aligned(length, alignment)? };
        let fixed = if base == 0 { 0 } else { libc::MAP_FIXED };
        // SAFETY: with MAP_FIXED the range is one that reserve_aligned has just reserved for us and nobody else knows;
        // without it the kernel picks a free one.
        let at = unsafe {
            libc::mmap(
                base as *mut c_void,
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | fixed,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if at == libc::MAP_FAILED {
            if base != 0 {
                unmap(base, length);
            }
            return Err(ZeResult::OUT_OF_HOST_MEMORY);
        }
        Ok(Self { base: at as usize, length })
    }

    /// The first address.
    pub(crate) fn base(&self) -> usize {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.length);
    }
}

/// Reserves `length` bytes of address space at a multiple of `alignment`.
fn reserve_aligned(length: usize, alignment: usize) -> Answer<usize> {
    let spacious = length.checked_add(alignment).ok_or(ZeResult::UNSUPPORTED_ALIGNMENT)?;
    // SAFETY: a new mapping at an address that the kernel picks touches no memory of anybody.
    let at = unsafe {
        libc::mmap(
            null_mut(),
            spacious,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(ZeResult::OUT_OF_HOST_MEMORY);
    }
    let start = at as usize;
    let base = start.next_multiple_of(alignment);
    unmap(start, base - start);
    unmap(base + length, start + spacious - base - length);
    Ok(base)
}

fn unmap(base: usize, length: usize) {
    if length > 0 {
        // SAFETY: the range was mapped by this module, and its owner gives it up.
        unsafe { libc::munmap(base as *mut c_void, length) };
    }
}
