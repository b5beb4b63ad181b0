//! Reads memory at addresses that may be wrong. The kernel copies it, and reports what is not mapped.
//!
//! A driver refuses a call with a wrong handle before it reads the structures of the call, and may never follow their
//! `pNext`. A hook reads them before the call, so that it must not trust their addresses.

use std::mem::MaybeUninit;
use std::ptr::with_exposed_provenance;

use crate::raw::{errno, processes::process};

/// The size of the part of the stack that is there without a question: what lies above a local variable are the frames
/// of the callers, and above the outermost one what the C library keeps there, a thread's descriptor or the
/// environment.
const STACK: usize = 4096;

/// Why memory was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Not all of it is mapped, or may be read.
    NotThere,
    /// The kernel refuses to copy anything: because of a seccomp filter, or without support.
    Refused,
}

/// A type of which any bytes are a value.
///
/// # Safety
///
/// They are: it is made of integers and has no niche.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for usize {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Fills `to` with several parts of the memory in order. Preserves errno.
pub(crate) fn copy(parts: &[libc::iovec], to: &mut [MaybeUninit<u8>]) -> Result<(), Failure> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let own = process::cached_id() as libc::pid_t;
    let count = parts.len() as libc::c_ulong;
    errno::preserve(|| {
        // SAFETY: process_vm_readv(2) writes to `to` only, and reports what it cannot read.
        let read = unsafe { libc::process_vm_readv(own, &raw const local, 1, parts.as_ptr(), count, 0) };
        match usize::try_from(read) {
            Ok(read) if read == to.len() => Ok(()),
            Err(_) if std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT) => Err(Failure::Refused),
            _ => Err(Failure::NotThere),
        }
    })
}

/// Fills `to` from an address.
#[cold]
fn copy_from(address: usize, to: &mut [MaybeUninit<u8>]) -> Result<(), Failure> {
    let part = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(address), iov_len: to.len() };
    copy(&[part], to)
}

/// The value at an address that the caller passes to the callee; `None` if it is null or cannot be read.
#[inline]
pub(crate) fn read<T: Plain>(address: usize) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the bytes of the variable.
    let bytes = unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast(), size_of::<T>()) };
    // SAFETY: all bytes are set, and any are a value.
    fill(address, bytes).then(|| unsafe { value.assume_init() })
}

/// The words of a list or buffer that the caller passes to the callee, as far as it can be read.
#[inline]
pub(crate) fn words(list: usize, count: usize) -> impl Iterator<Item = usize> + Clone {
    const BLOCK: usize = 64;
    let block = move |at: usize| {
        let mut block = [MaybeUninit::<usize>::uninit(); BLOCK];
        let length = BLOCK.min(count - at);
        // SAFETY: the first bytes of the variable.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), length * size_of::<usize>()) };
        let is_there = fill(list.checked_add(at.checked_mul(size_of::<usize>())?)?, bytes);
        // SAFETY: so many words are set.
        is_there.then(|| block.into_iter().take(length).map(|word| unsafe { word.assume_init() }))
    };
    (0..count).step_by(BLOCK).map_while(block).flatten()
}

/// Fills `to` with what the caller passes at an address; false if it is null or cannot be read.
///
/// Where the kernel copies nothing, it is read as the callee would.
#[inline]
pub(crate) fn fill(address: usize, to: &mut [MaybeUninit<u8>]) -> bool {
    let is_on_stack = address.wrapping_sub(to.as_ptr().addr()) < STACK;
    if !is_on_stack {
        let copied = if address == 0 { Err(Failure::NotThere) } else { copy_from(address, to) };
        if copied != Err(Failure::Refused) {
            return copied.is_ok();
        }
    }
    // SAFETY: `to` is a variable of this thread, and this the part of the stack above it. Or the callee is about to
    // read it.
    unsafe { with_exposed_provenance::<MaybeUninit<u8>>(address).copy_to(to.as_mut_ptr(), to.len()) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mapped_cannot_be_read() {
        let on_the_heap = Box::new([1_u64, 2, 3]);
        let here = [4_u64, 5];
        let heap = on_the_heap.as_ptr().expose_provenance();
        let stack = here.as_ptr().expose_provenance();
        assert_eq!([read(heap + 8), read(stack + 8)], [Some(2_u64), Some(5)]);
        assert_eq!(read(heap), Some([1_u64, 2, 3]));
        for nowhere in [0, 1, 0xdead_0000, usize::MAX - 3] {
            assert_eq!(read::<u32>(nowhere), None);
        }
        assert_eq!(words(heap, 2).collect::<Vec<_>>(), [1, 2]);
        assert_eq!([words(1, 2), words(usize::MAX - 7, 3), words(heap, 0)].map(Iterator::count), [0; 3]);
    }
}
