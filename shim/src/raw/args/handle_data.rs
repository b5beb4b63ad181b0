//! Handle data of the application, the only input that is read before the adapter has checked its size.
//!
//! A caller may pass any size, and an adapter refuses a wrong one before it reads. So data with a size of adapters'
//! data is read directly, and other data by the kernel, which reports unmapped memory.

use crate::raw::errno;

/// The sizes of handle data in bytes: of physical memory and events (16, 64), of memory (104 to 120), and of
/// urscope's backend (128).
const ADAPTER_SIZES: [usize; 6] = [16, 64, 104, 108, 120, 128];

/// The most bytes that are read. Larger data is not read.
pub(super) const SIZE_LIMIT: usize = 256;

/// Whether an adapter makes handle data of this size.
pub(super) fn is_adapter_size(size: usize) -> bool {
    ADAPTER_SIZES.contains(&size)
}

/// Calls `of` with handle data; `None` for a null pointer, or if not all bytes can be read.
///
/// # Safety
///
/// If an adapter makes handle data of this size, then `size` bytes can be read at `address`, or it is null.
#[inline]
pub(super) unsafe fn read<R>(address: usize, size: usize, of: impl FnOnce(&[u8]) -> R) -> Option<R> {
    if address == 0 || size == 0 || size > SIZE_LIMIT {
        return None;
    }
    if is_adapter_size(size) {
        // SAFETY: the caller's promise.
        return Some(of(unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), size) }));
    }
    let mut copy = [0; SIZE_LIMIT];
    let copy = copy.get_mut(..size)?;
    copied(address, copy).then(|| of(copy))
}

/// Copies bytes of this process; false if they cannot all be read. Preserves errno.
#[cold]
fn copied(address: usize, to: &mut [u8]) -> bool {
    let from = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(address), iov_len: to.len() };
    let into = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    // SAFETY: process_vm_readv(2) writes to `to` only, and reports what it cannot read.
    let size = errno::preserve(|| unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const into, 1, &raw const from, 1, 0)
    });
    usize::try_from(size) == Ok(to.len())
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
        // SAFETY: nothing is read.
        assert_eq!(unsafe { read(0, 16, <[u8]>::len) }, None);
    }
}
