//! A stretch of this process's address space that shows part of a shared-memory file.
//!
//! Below segments and allocations. Must never outlive its unmapping: whoever holds the value may use the range.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use super::PAGE;
use crate::ffi::result::{Outcome, ZeResult};

/// What may be done with a page: `ze_memory_access_attribute_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Access {
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_NONE`.
    None = 0,
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE`.
    ReadWrite = 1,
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY`.
    ReadOnly = 2,
}

impl Access {
    /// The access with this number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::None, Self::ReadWrite, Self::ReadOnly].into_iter().find(|access| *access as u32 == number)
    }

    fn protection(self) -> libc::c_int {
        match self {
            Self::None => libc::PROT_NONE,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Self::ReadOnly => libc::PROT_READ,
        }
    }
}

/// Flags of address space without memory.
const RESERVED: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Mapped pages, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of `file` from `offset`, shared, readable and writable, at an address that is a multiple of
    /// `alignment` (a power of 2). Length and offset are multiples of the page size.
    pub(crate) fn shared(file: BorrowedFd<'_>, offset: u64, length: usize, alignment: usize) -> Outcome<Self> {
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

    /// Sets `length` bytes of address space aside, inaccessible, at `wanted` if that is free and elsewhere if not.
    pub(crate) fn reserve(wanted: usize, length: usize) -> Outcome<Self> {
        // SAFETY: without MAP_FIXED the kernel takes a free range only, so no memory of anybody is touched.
        let at = unsafe { libc::mmap(wanted as *mut c_void, length, libc::PROT_NONE, RESERVED, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(ZeResult::OUT_OF_HOST_MEMORY);
        }
        Ok(Self { base: at as usize, length })
    }

    /// Shows part of `file` in a part of this range, in the place of what was there. All are whole pages.
    pub(crate) fn show(
        &self,
        base: usize,
        length: usize,
        file: BorrowedFd<'_>,
        offset: u64,
        access: Access,
    ) -> Outcome {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        self.replace(base, length, access, flags, file.as_raw_fd(), offset as libc::off_t)
    }

    /// Makes a part of this range inaccessible address space again.
    pub(crate) fn hide(&self, base: usize, length: usize) -> Outcome {
        self.replace(base, length, Access::None, RESERVED | libc::MAP_FIXED, -1, 0)
    }

    /// Changes what may be done with a part of this range.
    pub(crate) fn protect(&self, base: usize, length: usize, access: Access) -> Outcome {
        self.check(base, length)?;
        // SAFETY: the range lies in this mapping, whose owner asks for it.
        let changed = unsafe { libc::mprotect(base as *mut c_void, length, access.protection()) };
        if changed == 0 { Ok(()) } else { Err(ZeResult::OUT_OF_HOST_MEMORY) }
    }

    fn replace(
        &self,
        base: usize,
        length: usize,
        access: Access,
        flags: libc::c_int,
        file: i32,
        offset: libc::off_t,
    ) -> Outcome {
        self.check(base, length)?;
        // SAFETY: the range lies in this mapping, whose owner asks for it to be replaced.
        let at = unsafe { libc::mmap(base as *mut c_void, length, access.protection(), flags, file, offset) };
        if at == libc::MAP_FAILED { Err(ZeResult::OUT_OF_HOST_MEMORY) } else { Ok(()) }
    }

    /// `INVALID_ARGUMENT` for what is not a part of this range.
    fn check(&self, base: usize, length: usize) -> Outcome {
        let inside = base >= self.base && base.checked_add(length).is_some_and(|end| end <= self.base + self.length);
        if inside { Ok(()) } else { Err(ZeResult::INVALID_ARGUMENT) }
    }

    /// The first address.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The length in bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.length);
    }
}

/// Reserves `length` bytes of address space at a multiple of `alignment`.
fn reserve_aligned(length: usize, alignment: usize) -> Outcome<usize> {
    let spacious = length.checked_add(alignment).ok_or(ZeResult::UNSUPPORTED_ALIGNMENT)?;
    // SAFETY: a new mapping at an address that the kernel picks touches no memory of anybody.
    let at = unsafe { libc::mmap(null_mut(), spacious, libc::PROT_NONE, RESERVED, -1, 0) };
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
