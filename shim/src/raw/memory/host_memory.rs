//! Whether an address is one of host memory: memory of the program, of which a driver knows nothing.

use std::os::fd::AsRawFd as _;
use std::{mem::size_of, path::Path};

use crate::raw::{errno, files::plain_file};

/// `struct procmap_query` (`linux/fs.h`).
#[repr(C)]
#[derive(Default)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    device: [u32; 2],
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `PROCMAP_QUERY`: `_IOWR('f', 17, struct procmap_query)`. Linux has it since 6.11.
const QUERY: libc::Ioctl = ((3 << 30) | (size_of::<ProcmapQuery>() << 16) | (0x66 << 8) | 0x11) as libc::Ioctl;

/// `PROCMAP_QUERY_VMA_READABLE`.
const READABLE: u64 = 1;

/// How the names of memory begin that a driver maps into the process.
const OF_DRIVERS: [&[u8]; 4] = [b"/memfd:ze_soft", b"/dev/dri/", b"/dev/nvidia", b"/dmabuf:"];

/// Whether nothing of the program is at an address: nothing is mapped there, nothing that can be read, or memory of a
/// driver. An address of which that is not certain, as on an older kernel, counts as one of the program. Preserves
/// errno.
pub fn is_not_host_memory(address: u64) -> bool {
    errno::preserve(|| match query(address) {
        Some(answer) => answer,
        None => is_unmapped(address),
    })
}

/// `None` if the kernel does not answer.
fn query(address: u64) -> Option<bool> {
    let maps = plain_file::open(Path::new("/proc/self/maps"), libc::O_RDONLY).ok()?;
    let mut name = [0_u8; 256];
    let mut query = ProcmapQuery {
        size: size_of::<ProcmapQuery>() as u64,
        query_addr: address,
        vma_name_size: name.len() as u32,
        vma_name_addr: name.as_mut_ptr().expose_provenance() as u64,
        ..ProcmapQuery::default()
    };
    // SAFETY: the kernel writes the structure, and no more than `vma_name_size` bytes of the name.
    if unsafe { libc::ioctl(maps.as_raw_fd(), QUERY, &raw mut query) } != 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        return (error == Some(libc::ENOENT)).then_some(true);
    }
    Some(query.vma_flags & READABLE == 0 || OF_DRIVERS.iter().any(|begin| name.starts_with(begin)))
}

fn is_unmapped(address: u64) -> bool {
    let page = address & !0xfff;
    let mut resident = 0_u8;
    let page = std::ptr::with_exposed_provenance_mut(page as usize);
    // SAFETY: mincore(2) refuses addresses that are not mapped, and writes a byte for one page.
    let answer = unsafe { libc::mincore(page, 1, &raw mut resident) };
    answer != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM)
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    fn map(protection: i32, file: i32) -> u64 {
        let flags = if file < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: a new mapping, which nothing else refers to.
        let mapped = unsafe { libc::mmap(null_mut(), 4096, protection, flags, file, 0) };
        assert_ne!(mapped, libc::MAP_FAILED);
        mapped.expose_provenance() as u64
    }

    #[test]
    fn what_the_program_can_read_is_host_memory_unless_a_driver_has_mapped_it() {
        let of_driver = |name: &std::ffi::CStr| {
            // SAFETY: memfd_create(2) reads a C string; ftruncate(2) and close(2) take its descriptor.
            unsafe {
                let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
                assert_eq!(libc::ftruncate(file, 4096), 0);
                let mapped = map(libc::PROT_READ, file);
                libc::close(file);
                mapped
            }
        };
        let local = 0_u8;
        let heap = Box::new(0_u8);
        let of = |byte: &u8| std::ptr::from_ref(byte).expose_provenance() as u64;
        let host = [of(&local), of(&heap), map(libc::PROT_READ, -1), of_driver(c"other")];
        assert_eq!(host.map(is_not_host_memory), [false; 4]);
        let unmapped = map(libc::PROT_READ, -1);
        assert!(!is_unmapped(unmapped));
        // SAFETY: `map` made it, and nothing refers to it.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(unmapped as usize), 4096) };
        assert!(is_unmapped(unmapped + 8) && is_not_host_memory(unmapped + 8) && is_not_host_memory(u64::MAX));
        // An older kernel tells only whether something is mapped.
        let is_known = query(of(&local)).is_some();
        let others = [map(libc::PROT_NONE, -1), of_driver(c"ze_soft")];
        assert_eq!(others.map(is_not_host_memory), [is_known; 2]);
    }
}
