//! `errno(3)`, which urscope must not change for the program.

use std::ffi::c_int;

/// What errno was. It is restored when this is dropped.
pub struct Errno(c_int);

impl Errno {
    /// Errno as it is.
    pub fn now() -> Self {
        // SAFETY: errno(3) is a variable of this thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Calls a function and restores errno.
pub fn preserve<T>(function: impl FnOnce() -> T) -> T {
    let _errno = Errno::now();
    function()
}

/// Sets errno to `ENOSYS`.
pub fn set_unsupported() {
    // SAFETY: errno(3) is a variable of this thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
}
