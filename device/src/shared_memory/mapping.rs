//! Address space of this process that shows part of a shared-memory file, or nothing yet.
//!
//! Whoever holds the value may use its pages. Must never unmap a page that it has not mapped.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::{ffi::c_void, ptr::null_mut, sync::atomic::AtomicU64};

use super::PAGE;
use crate::ffi::result::{Outcome, ZeResult};

/// The access to a page: `ze_memory_access_attribute_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Access {
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_NONE`.
    None = 0,
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE`.
    ReadWrite = 1,
    /// `ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY`.
    ReadOnly = 2,
}

impl Access {
    /// The access with this `ze_memory_access_attribute_t` value.
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

/// mmap(2) flags of address space without memory.
const RESERVED: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Inaccessible bytes after memory of the application. A kernel that writes beyond the end faults there
/// instead of changing other memory of the process, which a GPU does not see either.
const GUARD: usize = 1 << 20;

/// A range of address space, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    length: usize,
    /// Inaccessible address space after it, in bytes.
    guard: usize,
}

impl Mapping {
    /// Maps `length` bytes of `file` from `offset`, shared, readable and writable, at an address that is a
    /// multiple of `alignment`, unless that is 0. Length and offset are multiples of the page size.
    /// `UNSUPPORTED_ALIGNMENT` if there are no such addresses, `OUT_OF_HOST_MEMORY` if the kernel refuses.
    pub(crate) fn shared(file: BorrowedFd<'_>, offset: u64, length: usize, alignment: usize) -> Outcome<Self> {
        Self::with_guard(file, offset, length, alignment, 0)
    }

    /// Like [`shared`](Self::shared), with inaccessible address space after it if there is enough.
    pub(crate) fn guarded(file: BorrowedFd<'_>, offset: u64, length: usize, alignment: usize) -> Outcome<Self> {
        let guarded = Self::with_guard(file, offset, length, alignment, GUARD);
        // The address space of a process may have a limit (RLIMIT_AS).
        guarded.or_else(|_| Self::shared(file, offset, length, alignment))
    }

    fn with_guard(file: BorrowedFd<'_>, offset: u64, length: usize, alignment: usize, guard: usize) -> Outcome<Self> {
        let step = multiple_of_pages(alignment)?;
        let whole = length.checked_add(guard).ok_or(ZeResult::OUT_OF_HOST_MEMORY)?;
        let base = if step == PAGE && guard == 0 { 0 } else { reserve_aligned(whole, step)? };
        let fixed = if base == 0 { 0 } else { libc::MAP_FIXED };
        // SAFETY: with MAP_FIXED the range is one that reserve_aligned has just reserved and nobody else knows; without
        // it the kernel picks a free one.
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
                unmap(base, whole);
            }
            return Err(ZeResult::OUT_OF_HOST_MEMORY);
        }
        Ok(Self { base: at as usize, length, guard })
    }

    /// Reserves `length` bytes of inaccessible address space, at `wanted` if that is free and elsewhere otherwise:
    /// `OUT_OF_HOST_MEMORY` if there is no such range.
    pub(crate) fn reserve(wanted: usize, length: usize) -> Outcome<Self> {
        // SAFETY: without MAP_FIXED the kernel only takes a free range, so no memory in use changes.
        let at = unsafe { libc::mmap(wanted as *mut c_void, length, libc::PROT_NONE, RESERVED, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(ZeResult::OUT_OF_HOST_MEMORY);
        }
        Ok(Self { base: at as usize, length, guard: 0 })
    }

    /// Maps `length` bytes of `file` from `offset` at `base`, which must be inside this range. Replaces what was mapped
    /// there. All numbers are multiples of the page size.
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

    /// Makes a part of this range inaccessible address space again, without memory.
    pub(crate) fn hide(&self, base: usize, length: usize) -> Outcome {
        self.replace(base, length, Access::None, RESERVED | libc::MAP_FIXED, -1, 0)
    }

    /// Changes the access to a part of this range.
    pub(crate) fn protect(&self, base: usize, length: usize, access: Access) -> Outcome {
        self.check(base, length)?;
        // SAFETY: the range is inside this mapping, whose owner requests the change.
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
        // SAFETY: the range is inside this mapping, whose owner requests the change.
        let at = unsafe { libc::mmap(base as *mut c_void, length, access.protection(), flags, file, offset) };
        if at == libc::MAP_FAILED { Err(ZeResult::OUT_OF_HOST_MEMORY) } else { Ok(()) }
    }

    /// `INVALID_ARGUMENT` if this is not a part of the range.
    fn check(&self, base: usize, length: usize) -> Outcome {
        let inside = base >= self.base && base.checked_add(length).is_some_and(|end| end <= self.base + self.length);
        if inside { Ok(()) } else { Err(ZeResult::INVALID_ARGUMENT) }
    }

    /// Its first address.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Its length, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

/// State in shared memory that any process may change at any time.
///
/// # Safety
/// It must consist of atomics only, be valid for every bit pattern, and be aligned to at most a page.
pub(crate) unsafe trait SharedState {}

// SAFETY: it is one atomic.
unsafe impl SharedState for AtomicU64 {}

impl Mapping {
    /// Element `index` of the array of `T` that a mapped file holds from its first byte on. `None` beyond the end.
    pub(crate) fn get<T: SharedState>(&self, index: usize) -> Option<&T> {
        let offset = index.checked_mul(size_of::<T>())?;
        let inside = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.length);
        // SAFETY: the element is inside the mapping, which lives as long as the borrow, and is aligned because mappings
        // start at a page. SharedState promises that any bytes are a valid T and that a shared reference may see
        // changes.
        inside.then(|| unsafe { &*((self.base + offset) as *const T) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.length + self.guard);
    }
}

/// The smallest multiple of the page size that is a multiple of `alignment`, too:
/// `UNSUPPORTED_ALIGNMENT` if that exceeds the address size.
fn multiple_of_pages(alignment: usize) -> Outcome<usize> {
    if alignment == 0 {
        return Ok(PAGE);
    }
    // The page size is a power of 2, so this is the largest number that divides both.
    let shared = PAGE.min(1 << alignment.trailing_zeros());
    alignment.checked_mul(PAGE / shared).ok_or(ZeResult::UNSUPPORTED_ALIGNMENT)
}

/// Reserves `length` bytes of address space at a multiple of `alignment`, which is one of the page size, too.
fn reserve_aligned(length: usize, alignment: usize) -> Outcome<usize> {
    let padded = length.checked_add(alignment - PAGE).ok_or(ZeResult::UNSUPPORTED_ALIGNMENT)?;
    // SAFETY: the kernel picks a free range, so no memory in use changes.
    let at = unsafe { libc::mmap(null_mut(), padded, libc::PROT_NONE, RESERVED, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(ZeResult::OUT_OF_HOST_MEMORY);
    }
    let start = at as usize;
    let base = start.next_multiple_of(alignment);
    unmap(start, base - start);
    unmap(base + length, start + padded - base - length);
    Ok(base)
}

fn unmap(base: usize, length: usize) {
    if length > 0 {
        // SAFETY: this module mapped the range, and its owner no longer uses it.
        unsafe { libc::munmap(base as *mut c_void, length) };
    }
}
