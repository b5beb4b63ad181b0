//! A library that the process has loaded, and symbols in it and in the libraries that it depends on.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::NonNull;

/// A loaded library, or all that every library sees. It stays loaded.
pub(crate) struct Library(NonNull<c_void>);

// SAFETY: a handle of `dlopen` may be used by any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The loaded library whose file has this name; `None` if there is none.
    pub(crate) fn loaded(file_name: &str) -> Option<Self> {
        let mut search = Search { file_name, path: None };
        // SAFETY: the callback gets `search` back, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(compare), (&raw mut search).cast()) };
        let path = search.path?;
        // SAFETY: a library that is loaded is not initialized again.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        NonNull::new(handle).map(Self)
    }

    /// The address of a symbol in this library or in one that it depends on.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is valid, as it is never closed.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    /// A function in this library or in one that it depends on.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function that has this name there.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the caller's promise, and as wide as a pointer.
        self.symbol(name).map(|function| unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&function) })
    }

    /// The symbols that every library of the process sees: of the program, of what it depends on, and of preloaded
    /// libraries; `None` if the process has no handle for them.
    pub(crate) fn all() -> Option<Self> {
        // SAFETY: without a name, no library is loaded.
        NonNull::new(unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) }).map(Self)
    }
}

struct Search<'a> {
    file_name: &'a str,
    path: Option<CString>,
}

unsafe extern "C" fn compare(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: `Library::loaded` passes its `Search`, and the loader an entry with a name, which may be empty.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: a name of the loader ends with a null byte.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    let is_it = path.to_str().is_ok_and(|path| path.rsplit('/').next() == Some(search.file_name));
    if is_it {
        search.path = Some(path.to_owned());
    }
    c_int::from(is_it)
}
