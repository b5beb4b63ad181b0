//! The allocator of this library: malloc(3), and a reserve for when malloc fails.
//!
//! A failed allocation in Rust ends the process, although the program may not need the memory. The reserve is enough
//! to switch off the parts that need more ([`is_used`]). It is in the library's zeroed data, which has no pages
//! before it is used.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The size of the reserve in bytes.
const SIZE: usize = 1 << 18;

/// The largest alignment of the reserve.
const ALIGNMENT: usize = 16;

#[repr(align(16))]
struct Reserve(UnsafeCell<[u8; SIZE]>);

// SAFETY: each byte is handed out once at a time, by an atomic position.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve(UnsafeCell::new([0; SIZE]));

/// The number of bytes of the reserve in use.
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Whether malloc(3) has ever failed.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether malloc(3) has ever failed for this library. Optional parts that need memory are off from then on.
#[inline]
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// The allocator.
pub struct Allocator;

impl Allocator {
    #[cold]
    fn from_reserve(layout: Layout) -> *mut u8 {
        IS_USED.store(true, Ordering::Relaxed);
        let size = layout.size().next_multiple_of(ALIGNMENT);
        if layout.align() > ALIGNMENT || size > SIZE {
            return std::ptr::null_mut();
        }
        let at = USED_BYTES.fetch_add(size, Ordering::Relaxed);
        if at > SIZE - size {
            USED_BYTES.fetch_sub(size, Ordering::Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the bytes from there on are in the reserve, and are not in use.
        unsafe { RESERVE.0.get().cast::<u8>().add(at) }
    }

    fn position(memory: *mut u8) -> Option<usize> {
        let at = memory.addr().checked_sub(RESERVE.0.get().addr())?;
        (at < SIZE).then_some(at)
    }

    /// Frees the bytes if they were allocated last. Others stay in use.
    #[cold]
    fn to_reserve(at: usize, layout: Layout) {
        let end = at + layout.size().next_multiple_of(ALIGNMENT);
        let _ = USED_BYTES.compare_exchange(end, at, Ordering::Relaxed, Ordering::Relaxed);
    }
}

// SAFETY: memory comes from the system's allocator or from the reserve, with the layout that was asked for, and is
// freed there. Nothing here unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { Self::from_reserve(layout) } else { memory }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            return memory;
        }
        let reserved = Self::from_reserve(layout);
        if !reserved.is_null() {
            // SAFETY: the bytes were just allocated; they may have been used before.
            unsafe { reserved.write_bytes(0, layout.size()) };
        }
        reserved
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match Self::position(memory) {
            Some(at) => Self::to_reserve(at, layout),
            // SAFETY: it is not from the reserve, so it is from the system's allocator, with this layout.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_reserved = Self::position(memory).is_some();
        if !is_reserved {
            // SAFETY: as above.
            let grown = unsafe { System.realloc(memory, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller promises a size that makes a valid layout; the old memory is as large as its layout says.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_handed_out_once_and_the_last_piece_comes_back() {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        let first = Allocator::from_reserve(layout(100));
        let second = Allocator::from_reserve(layout(1));
        assert!(is_used());
        assert_eq!(second.addr() - first.addr(), 112);
        // SAFETY: both were just allocated; the second one is not used again.
        unsafe { Allocator.dealloc(second, layout(1)) };
        assert_eq!(Allocator::from_reserve(layout(17)), second);
        // SAFETY: 100 bytes were allocated there, and `grown` is as large as asked for.
        unsafe {
            first.write_bytes(7, 100);
            let grown = Allocator.realloc(first, layout(100), 1000);
            assert!(Allocator::position(grown).is_none(), "there is memory");
            assert_eq!(std::slice::from_raw_parts(grown, 100), [7; 100]);
            Allocator.dealloc(grown, layout(1000));
        }
        assert!(Allocator::from_reserve(layout(SIZE)).is_null());
        assert!(Allocator::from_reserve(Layout::from_size_align(8, 4096).unwrap()).is_null());
    }
}
