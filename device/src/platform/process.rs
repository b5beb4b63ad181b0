//! This process: when it started, whether it is the forked child of a process that used the device, and
//! whether a kernel has faulted in it.
//!
//! Every entry point and the IPC handles read this. Must never allocate or lock in the fork handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{ffi::c_void, fs::OpenOptions, io::Read as _, sync::Once};

use super::descriptor;

static FORKED: AtomicBool = AtomicBool::new(false);
static LOST: AtomicBool = AtomicBool::new(false);
static WATCH: Once = Once::new();

/// Starts to detect forks. Called when the device is first initialised: the child of a process that never used the
/// device is not marked, and may use the device itself.
pub(crate) fn watch_forks() {
    WATCH.call_once(|| {
        // SAFETY: the handler only stores to an atomic, which pthread_atfork(3) allows in the child of a threaded
        // process.
        unsafe { libc::pthread_atfork(None, None, Some(mark_forked)) };
    });
}

extern "C" fn mark_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// True in a child that was forked after the device was initialised.
pub(crate) fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// From now on the devices of this process are lost: a kernel has faulted.
pub(crate) fn lose_devices() {
    LOST.store(true, Ordering::Release);
}

/// True once a kernel has faulted in this process.
pub(crate) fn devices_are_lost() -> bool {
    LOST.load(Ordering::Acquire)
}

/// When a process started, in clock ticks since boot: field 22 of `/proc/<pid>/stat` (proc_pid_stat(5)). Together with
/// the pid it identifies a process, because pids are reused. `None` if the process does not exist or is not visible.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let mut stat = String::new();
    let file = descriptor::open(format!("/proc/{pid}/stat"), OpenOptions::new().read(true));
    file.and_then(|mut file| file.read_to_string(&mut stat)).ok()?;
    // The second field is the command in parentheses, and may itself contain blanks and parentheses.
    stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Lets any process of the same user fetch the descriptors of this one, as Intel's driver does at context creation.
/// Only the Yama security module needs it. Without that module the call fails, and fetching works anyway.
pub fn allow_descriptor_fetch() {
    // SAFETY: PR_SET_PTRACER takes plain numbers and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Whether memory is there, as far as the kernel says: a filter of system calls may hide it.
pub(crate) fn can_read(address: *mut c_void, size: usize) -> bool {
    let mut copy = [0_u8; 64];
    let size = size.min(copy.len());
    let into = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: size };
    let from = libc::iovec { iov_base: address, iov_len: size };
    // SAFETY: process_vm_readv(2) writes to the copy only, and reports what it cannot read.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const into, 1, &raw const from, 1, 0) };
    match read {
        -1 => std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT),
        read => read as usize == size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_other_addresses() {
        let here = 7_u64;
        assert!(can_read((&raw const here).cast_mut().cast(), 8));
        for number in [1_usize, 0x1234_5678, usize::MAX - 32] {
            assert!(!can_read(number as *mut c_void, 16), "{number:#x}");
        }
    }
}
