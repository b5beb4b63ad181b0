//! `errno(3)`, which urscope must not change for the program.

/// Calls a function and restores errno.
pub fn preserve<T>(function: impl FnOnce() -> T) -> T {
    // SAFETY: errno(3) is a variable of this thread.
    let before = unsafe { *libc::__errno_location() };
    let result = function();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    result
}

/// Sets errno to `ENOSYS`.
pub fn set_unsupported() {
    // SAFETY: errno(3) is a variable of this thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
}
