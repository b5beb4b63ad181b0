//! The size of the host's memory.

/// The physical memory of the host, in bytes (sysconf(3)). 0 if the system does not report it.
pub(crate) fn physical_memory() -> u64 {
    // SAFETY: sysconf takes a number and returns a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0))
}
