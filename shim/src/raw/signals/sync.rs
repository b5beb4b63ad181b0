//! The primitives by which threads, signal handlers and readers of a mapped file share memory.
//!
//! `chunks`, `thread`, `lock` and `fork_reset` use no others, so that `models/` can run these files with cells,
//! atomics and stores that are interrupted everywhere.

use std::arch::asm;

pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};
pub(crate) use std::{cell::Cell, hint::spin_loop, thread::yield_now};

/// Adds to a word of this thread and returns its old value, in one instruction, atomically for signal handlers.
#[inline]
pub(crate) fn claim(word: &Cell<usize>, count: usize) -> usize {
    let mut before = count;
    // SAFETY: the word is alive, and no other thread has it.
    unsafe {
        asm!("xadd qword ptr [{word}], {before}", word = in(reg) word.as_ptr(), before = inout(reg) before, options(nostack));
    }
    before
}

/// Replaces a word of this thread if it is still `from`; false if a signal handler has changed it. One instruction.
#[inline]
pub(crate) fn advance(word: &Cell<usize>, from: usize, to: usize) -> bool {
    let mut found = from;
    // SAFETY: the word is alive, and no other thread has it.
    unsafe {
        asm!("cmpxchg qword ptr [{word}], {to}", word = in(reg) word.as_ptr(), to = in(reg) to,
            inout("rax") found, options(nostack));
    }
    found == from
}

/// Replaces a word of this thread and returns its old value, in one instruction.
#[inline]
pub(crate) fn exchange(word: &Cell<usize>, value: usize) -> usize {
    let mut before = value;
    // SAFETY: the word is alive, and no other thread has it.
    unsafe {
        asm!("xchg qword ptr [{word}], {before}", word = in(reg) word.as_ptr(), before = inout(reg) before,
            options(nostack, preserves_flags));
    }
    before
}

/// Adds one to a counter that no other thread changes, in one instruction.
#[inline]
pub(crate) fn add_one(counter: &AtomicU64) {
    // SAFETY: the counter is alive.
    unsafe { asm!("inc qword ptr [{}]", in(reg) counter.as_ptr(), options(nostack)) };
}

/// Stores a word after all earlier stores.
///
/// # Safety
///
/// The place is writable and aligned.
#[inline]
pub(crate) unsafe fn store(place: *mut u64, word: u64) {
    // SAFETY: the caller's promise. The compiler keeps the order of volatile stores, and so does the processor.
    unsafe { place.write_volatile(word) };
}

/// Stores a word at any address, in one instruction.
///
/// # Safety
///
/// The place is writable.
#[inline]
pub(crate) unsafe fn store_unaligned(place: *mut u64, word: u64) {
    // SAFETY: the caller's promise. Assembly, because the compiler may tear an unaligned store.
    unsafe { asm!("mov qword ptr [{}], {}", in(reg) place, in(reg) word, options(nostack, preserves_flags)) };
}

/// Prefetches the cache line of any address for writing.
#[inline]
pub(crate) fn prefetch_to_write(address: usize) {
    // SAFETY: it has no visible effect for any address.
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// The kernel's number of this thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: gettid(2) has no arguments and cannot fail. The C library has a function for it since 2.30 only.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}
