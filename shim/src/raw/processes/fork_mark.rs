//! Detects unnoticed forks, without the C library's handlers (`_Fork`, a bare `clone`), by a page that the kernel
//! wipes in every child.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The contents of the page if the fork of the process has been noticed.
const NOTICED: u32 = 1;

/// The page, or before it is mapped, a variable that no fork wipes.
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNWIPED).cast_mut());

static UNWIPED: AtomicU32 = AtomicU32::new(NOTICED);

/// Maps the page. If the kernel refuses (before Linux 4.14), only forks by the C library are noticed.
pub fn install() {
    const PAGE: usize = 4096;
    // SAFETY: a new anonymous mapping; the advice applies to it alone.
    let page = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return;
        }
        if libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, PAGE);
            return;
        }
        page
    };
    MARK.store(page.cast(), Ordering::Release);
    note();
}

/// Whether this is a child of an unnoticed fork: [`note`] was not called.
#[inline]
pub fn is_unnoticed() -> bool {
    // SAFETY: the variable or the page, which is zeroed or holds what `note` stored, and is never unmapped.
    unsafe { &*MARK.load(Ordering::Relaxed) }.load(Ordering::Relaxed) != NOTICED
}

/// Marks the fork of this process as noticed.
pub fn note() {
    // SAFETY: as above.
    unsafe { &*MARK.load(Ordering::Relaxed) }.store(NOTICED, Ordering::Relaxed);
}
