//! The libraries of all namespaces of the dynamic loader. `dl_iterate_phdr` shows only those of our own. Must load no
//! library.
//!
//! `dlmopen` makes a namespace. From glibc 2.35 on, the dynamic loader links the lists of all namespaces for debuggers
//! (`link.h`, `r_debug_extended`); older ones show only the first.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::{os::unix::ffi::OsStrExt as _, path::PathBuf, ptr::NonNull};

use super::modules::{self, Module};
use crate::raw::late_functions::weak;

/// A loaded library, and whether it is in the namespace of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The library.
    pub module: Module,
    /// Whether it is in the namespace of the program, which is also ours.
    pub of_program: bool,
}

/// `struct link_map` of `link.h`.
#[repr(C)]
pub(super) struct LinkMap {
    /// The difference between an address in the process and the address in the file.
    pub bias: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: Option<NonNull<Self>>,
    previous: Option<NonNull<Self>>,
}

impl LinkMap {
    /// The path with which it was opened; empty for the program.
    pub(super) fn name(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: the name of a library in a list of the loader is a C string, which lives as long as the library.
        unsafe { CStr::from_ptr(self.name) }
    }
}

/// `struct r_debug_extended` of `link.h`.
#[repr(C)]
struct Debug {
    version: c_int,
    first: Option<NonNull<LinkMap>>,
    breakpoint: usize,
    state: c_int,
    loader: usize,
    /// Only from version 2 on.
    next: Option<NonNull<Self>>,
}

/// The version of the structure that has `next`.
const LINKED: c_int = 2;

/// The libraries whose file names begin with `beginning`, in all namespaces.
pub fn loaded(beginning: &str) -> Vec<Placed> {
    let mut found = Vec::new();
    let debug = weak!("_r_debug");
    modules::while_nothing_is_loaded(|| {
        let mut lists = NonNull::new(debug.cast::<Debug>());
        let mut of_program = true;
        while let Some(list) = lists {
            // SAFETY: the dynamic loader's own description of its lists, which do not change meanwhile.
            let list = unsafe { list.as_ref() };
            collect(list, beginning, of_program, &mut found);
            of_program = false;
            lists = if list.version >= LINKED { list.next } else { None };
        }
    });
    found
}

fn collect(list: &Debug, beginning: &str, of_program: bool, found: &mut Vec<Placed>) {
    let mut maps = list.first;
    while let Some(map) = maps {
        // SAFETY: an element of the loader's list, which does not change while the loader waits.
        let map = unsafe { map.as_ref() };
        maps = map.next;
        let module = Module { base: map.bias, path: PathBuf::from(OsStr::from_bytes(map.name().to_bytes())) };
        if module.file_name().starts_with(beginning) {
            found.push(Placed { module, of_program });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_namespace_is_found() {
        let libc = loaded("libc.so.");
        assert!(matches!(&libc[..], [one] if one.of_program), "{libc:?}");
        // SAFETY: the C library of a second namespace runs only its own initialization.
        let second = unsafe { libc::dlmopen(libc::LM_ID_NEWLM, c"libc.so.6".as_ptr(), libc::RTLD_NOW) };
        assert!(!second.is_null());
        let libc = loaded("libc.so.");
        assert!(matches!(&libc[..], [one, two] if one.of_program && !two.of_program), "{libc:?}");
    }
}
