//! Reads structures of the interpreter, which another thread may change or free.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::raw::memory::checked;

/// Whether the kernel refuses the call: because of a seccomp filter, or without support.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether the kernel has refused a read.
pub(super) fn is_refused() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

/// Fills `to` from the address `from`.
fn read(from: usize, to: &mut [MaybeUninit<u8>]) -> Option<&[u8]> {
    let part = libc::iovec { iov_base: std::ptr::without_provenance_mut(from), iov_len: to.len() };
    read_parts(&[part], to)
}

/// Fills `to` with several parts of the memory in order; `None` if not all of it can be read.
pub(super) fn read_parts<'a>(parts: &[libc::iovec], to: &'a mut [MaybeUninit<u8>]) -> Option<&'a [u8]> {
    let copied = checked::copy(parts, to);
    if copied == Err(checked::Failure::Refused) {
        REFUSED.store(true, Ordering::Relaxed);
    }
    // SAFETY: all of it is set.
    copied.ok().map(|()| unsafe { to.assume_init_ref() })
}

/// The word at an address.
pub(super) fn word(at: usize) -> Option<usize> {
    let mut bytes = [MaybeUninit::uninit(); size_of::<usize>()];
    Some(usize::from_ne_bytes(*read(at, &mut bytes)?.first_chunk()?))
}

/// `length` bytes at an address, at most `limit` of them.
pub(super) fn bytes(at: usize, length: usize, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![MaybeUninit::uninit(); length.min(limit)];
    read(at, &mut bytes).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mapped_cannot_be_read() {
        let here = [0x1122_3344_5566_7788_usize, 7];
        let at = std::hint::black_box(&here).as_ptr().addr();
        assert_eq!(word(at), Some(here[0]));
        assert_eq!(bytes(at + 8, 8, 4), Some(7_u32.to_ne_bytes().to_vec()));
        for nowhere in [0, 1, usize::MAX - 3] {
            assert_eq!(word(nowhere), None);
        }
        let mut both = [MaybeUninit::uninit(); 16];
        let part = |at: usize| libc::iovec { iov_base: std::ptr::without_provenance_mut(at), iov_len: 8 };
        let read = read_parts(&[part(at + 8), part(at)], &mut both).unwrap();
        assert_eq!(read[..8], 7_usize.to_ne_bytes());
        assert!(read_parts(&[part(at), part(8)], &mut both).is_none());
        assert!(!is_refused());
    }
}
