//! The error message of the calling thread's last call, printed as dpctl prints it.

use std::ffi::{CStr, CString, c_char};
use std::{cell::RefCell, env, ptr};

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Forgets the message of an earlier call.
pub(crate) fn clear() {
    LAST.with_borrow_mut(|last| *last = None);
}

/// Stores a message, and prints it where dpctl would: with `DPCTL_VERBOSITY=error` or `warning`.
pub(crate) fn report(function: &str, message: &str) {
    let asked = env::var_os("DPCTL_VERBOSITY");
    if asked.is_some_and(|level| level == "error" || level == "warning") {
        eprintln!("[ERR] {function}: {message}");
    }
    let text: String = message.chars().filter(|character| *character != '\0').collect();
    LAST.with_borrow_mut(|last| *last = CString::new(text).ok());
}

/// The message; null if there is none. It is valid until the thread's next call.
pub(crate) fn last() -> *const c_char {
    LAST.with_borrow(|last| last.as_deref().map_or(ptr::null(), CStr::as_ptr))
}
