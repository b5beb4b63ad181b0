//! The current thread's number and name. The kernel is asked once per thread, never per call.

use std::cell::Cell;

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
    static NAMED: Cell<bool> = const { Cell::new(false) };
}

/// The kernel's number of the thread.
#[inline]
pub fn id() -> u32 {
    match ID.get() {
        0 => {
            // SAFETY: gettid(2) has no arguments and cannot fail.
            let id = unsafe { libc::gettid() } as u32;
            ID.set(id);
            id
        }
        id => id,
    }
}

/// The thread's name on the first call, then `None`.
pub fn name_once() -> Option<String> {
    if NAMED.replace(true) {
        return None;
    }
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, the last of them a NUL (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Forgets number and name: after a `fork`, this is another thread.
pub fn forget() {
    ID.set(0);
    NAMED.set(false);
}
