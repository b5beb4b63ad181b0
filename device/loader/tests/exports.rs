//! The built library: its name, and a symbol for every function of the table.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::ffi::CString;
use std::path::PathBuf;

use urscope_device::ddi::{LOADER, TABLES};

fn library() -> PathBuf {
    // Cargo builds the library before its tests, beside them or one folder up.
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join("libze_loader.so"))
        .find(|path| path.exists())
        .expect("libze_loader.so is not built")
}

#[test]
fn every_function_is_an_exported_symbol() {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the library runs nothing when it is loaded.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null());
    let getters = TABLES.iter().map(|table| table.getter);
    let functions = TABLES.iter().flat_map(|table| table.functions).chain(LOADER).map(|function| function.name);
    let mut count = 0;
    for name in functions.chain(getters) {
        let symbol = CString::new(name).unwrap();
        // SAFETY: the handle is that of a loaded library, the name a C string.
        assert!(!unsafe { libc::dlsym(handle, symbol.as_ptr()) }.is_null(), "{name}");
        count += 1;
    }
    assert_eq!(count, 478 + TABLES.len() + LOADER.len());
}

#[test]
fn a_symbol_leads_to_its_entry_point() {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: as above; zeDriverGet has this signature (ze_api.h).
    let get: extern "C" fn(*mut u32, *mut usize) -> u32 = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        std::mem::transmute(libc::dlsym(handle, c"zeDriverGet".as_ptr()))
    };
    let (mut count, mut driver) = (0, 0);
    assert_eq!((get(&raw mut count, &raw mut driver), count), (0, 1));
}

#[test]
fn the_library_is_called_libze_loader_so_1() {
    let file = std::fs::read(library()).unwrap();
    assert!(file.windows(18).any(|window| window == b"libze_loader.so.1\0"));
}
