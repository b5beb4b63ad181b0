//! The source name of a C++ function, from the C++ library of this process if there is one. Must load no library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::modules;

/// `abi::__cxa_demangle` of the C++ ABI (3.4).
type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// The name in the source; a name that is not of C++ is given back as it is.
pub fn demangle(name: &str) -> String {
    cxx(name).unwrap_or_else(|| name.to_owned())
}

fn cxx(name: &str) -> Option<String> {
    let mangled = CString::new(name).ok().filter(|_| name.starts_with("_Z"))?;
    let function = modules::find("libstdc++.so.6", c"__cxa_demangle")?;
    // SAFETY: the C++ ABI gives this function this type.
    let function = unsafe { std::mem::transmute::<usize, Demangle>(function) };
    // SAFETY: it reads a C string, and allocates the answer where it is given no room.
    let text = unsafe { function(mangled.as_ptr(), null_mut(), null_mut(), null_mut()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the answer is a C string.
    let source = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: it came from `malloc`, and nobody else has it.
    unsafe { libc::free(text.cast::<c_void>()) };
    Some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_of_cxx_stays_as_it_is() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Zx"), "_Zx");
    }
}
