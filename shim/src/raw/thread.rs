//! The current thread's number and name. The kernel is asked once per thread, never per call.

use std::{
    borrow::Cow,
    cell::Cell,
    ffi::{CStr, c_void},
    sync::OnceLock,
};

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

/// The name of a thread, as the kernel keeps it.
pub struct Name([u8; 16]);

impl Name {
    /// The name as text. Allocates only if it is not UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default().to_string_lossy()
    }
}

/// The thread's name on the first call, then `None`.
pub fn name_once() -> Option<Name> {
    if NAMED.replace(true) {
        return None;
    }
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, the last of them a NUL (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    Some(Name(name))
}

/// Has `end` called when this thread ends, after the destructors of its thread-local C++ objects. Always the same function.
pub fn at_end(end: fn()) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    static END: OnceLock<fn()> = OnceLock::new();

    extern "C" fn call_end(_: *mut c_void) {
        if let Some(end) = END.get() {
            end();
        }
    }

    END.get_or_init(|| end);
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: it fills the variable; the destructor is a function of a library that is never unloaded.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(call_end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // A destructor is called for values that are not null; it does not use the value.
        // SAFETY: the key was created and is never deleted.
        unsafe { libc::pthread_setspecific(*key, std::ptr::without_provenance(1)) };
    }
}

/// Forgets number and name: after a `fork`, this is another thread.
pub fn forget() {
    ID.set(0);
    NAMED.set(false);
}
