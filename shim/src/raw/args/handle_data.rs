//! Handle data that the application hands in: the only bytes that are read before the adapter has checked their size.
//!
//! A caller may pass any size, and an adapter refuses a wrong one before it reads. So data of a size that adapters
//! make is read as they would read it, and other data by the kernel, which does not crash where there are fewer
//! bytes.

use crate::raw::errno;

/// The sizes of handle data in bytes: of physical memory and events (16, 64), of memory (104 to 120), and of our
/// backend (128).
const ADAPTER_SIZES: [usize; 6] = [16, 64, 104, 108, 120, 128];

/// The most bytes that are read. Data of a larger size is left alone.
pub(super) const SIZE_LIMIT: usize = 256;

/// Whether an adapter makes handle data of that size.
pub(super) fn is_adapter_size(size: usize) -> bool {
    ADAPTER_SIZES.contains(&size)
}

/// What `of` makes of handle data; `None` for a null pointer, and for bytes that are not all there.
///
/// # Safety
///
/// If an adapter makes handle data of that size, then `size` bytes can be read at `address`, or it is null.
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

/// Copies bytes of this process; false if they cannot all be read. Leaves errno as it is.
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

    /// What is read of `size` bytes that end where nothing can be read.
    fn read_at_the_end_of_a_page(there: usize, size: usize) -> Option<Vec<u8>> {
        // SAFETY: two new pages of this test, of which the second is made inaccessible, and which are unmapped at the
        // end.
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
