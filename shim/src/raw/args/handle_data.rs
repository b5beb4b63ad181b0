//! Handle data of the application. A caller may pass any size, and an adapter refuses a wrong one before it reads.

use std::mem::MaybeUninit;

use crate::raw::memory::checked;

/// The most bytes that are read. Larger data is not read.
pub(super) const SIZE_LIMIT: usize = 256;

/// Calls `of` with handle data; `None` for a null pointer, or if not all bytes can be read.
#[inline]
pub(super) fn read<R>(address: usize, size: usize, of: impl FnOnce(&[u8]) -> R) -> Option<R> {
    if address == 0 || size == 0 || size > SIZE_LIMIT {
        return None;
    }
    let mut copy = [MaybeUninit::uninit(); SIZE_LIMIT];
    let copy = copy.get_mut(..size)?;
    // SAFETY: all of it is set.
    checked::fill(address, copy).then(|| of(unsafe { copy.assume_init_ref() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `size` bytes, of which `there` end at an unreadable page.
    fn read_at_the_end_of_a_page(there: usize, size: usize) -> Option<Vec<u8>> {
        // SAFETY: two new pages of this test, the second inaccessible, which are unmapped at the end.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(std::ptr::null_mut(), 2 * page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(page), page, libc::PROT_NONE), 0);
            pages.cast::<u8>().write_bytes(7, page);
            let read = read(pages.byte_add(page - there).expose_provenance(), size, <[u8]>::to_vec);
            assert_eq!(libc::munmap(pages, 2 * page), 0);
            read
        }
    }

    #[test]
    fn bytes_that_are_not_there_are_not_read() {
        assert_eq!(read_at_the_end_of_a_page(16, 16), Some(vec![7; 16]));
        assert_eq!(read_at_the_end_of_a_page(17, 17), Some(vec![7; 17]));
        assert_eq!(read_at_the_end_of_a_page(16, 17), None);
        assert_eq!(read_at_the_end_of_a_page(16, usize::MAX), None);
        assert_eq!(read(0, 16, <[u8]>::len), None);
    }
}
