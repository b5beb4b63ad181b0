//! The built library: its name, and a symbol for every function of the table.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::ffi::{CStr, CString, c_void};
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

/// The address of a symbol of the library; NULL if it has none of this name.
fn symbol(name: &CStr) -> *mut c_void {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the library runs nothing when it is loaded, and the name is a C string.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null());
        libc::dlsym(handle, name.as_ptr())
    }
}

#[test]
fn every_function_is_an_exported_symbol() {
    let tracers = TABLES.iter().flat_map(|table| table.functions).filter_map(|function| {
        let stem = ["zer", "ze"].iter().find_map(|prefix| function.name.strip_prefix(prefix))?;
        stem.starts_with(char::is_uppercase).then(|| format!("zelTracer{stem}RegisterCallback"))
    });
    let tracers: Vec<_> = tracers.collect();
    // As many as zel_tracing_register_cb.h declares.
    assert_eq!(tracers.len(), 252);
    let getters = TABLES.iter().map(|table| table.getter);
    let functions = TABLES.iter().flat_map(|table| table.functions).chain(LOADER).map(|function| function.name);
    let mut count = 0;
    for name in functions.chain(getters).chain(tracers.iter().map(String::as_str)) {
        assert!(!symbol(&CString::new(name).unwrap()).is_null(), "{name}");
        count += 1;
    }
    assert_eq!(count, 478 + TABLES.len() + LOADER.len() + tracers.len());
}

#[test]
fn a_symbol_leads_to_its_entry_point() {
    // SAFETY: zeDriverGet has this signature (ze_api.h).
    let get: extern "C" fn(*mut u32, *mut usize) -> u32 = unsafe { std::mem::transmute(symbol(c"zeDriverGet")) };
    let mut count = 0;
    let mut driver = 0;
    assert_eq!((get(&raw mut count, &raw mut driver), count), (0, 1));
}

#[test]
fn the_library_is_called_libze_loader_so_1() {
    let file = std::fs::read(library()).unwrap();
    assert!(file.windows(18).any(|window| window == b"libze_loader.so.1\0"));
}

type Callback = extern "C" fn(*const *const u32, u32, *mut u32, *mut *mut u32);

extern "C" fn count(arguments: *const *const u32, result: u32, calls: *mut u32, _: *mut *mut u32) {
    // SAFETY: zeInit has one argument, and the tracer was created with a place for a number.
    unsafe { *calls += 1 + **arguments + result };
}

/// As oneCCL does it, and as a program that is linked with the loader: a tracer that sees memory freed.
#[test]
fn a_tracer_is_called_around_a_traced_function() {
    // SAFETY: the signatures of zel_tracing_api.h, zel_tracing_register_cb.h and ze_api.h.
    unsafe {
        let enable_layer: extern "C" fn() -> u32 = std::mem::transmute(symbol(c"zelEnableTracingLayer"));
        let create: extern "C" fn(*const [usize; 3], *mut usize) -> u32 =
            std::mem::transmute(symbol(c"zelTracerCreate"));
        let register: extern "C" fn(usize, u32, Callback) -> u32 =
            std::mem::transmute(symbol(c"zelTracerInitRegisterCallback"));
        let enable: extern "C" fn(usize, u8) -> u32 = std::mem::transmute(symbol(c"zelTracerSetEnabled"));
        let destroy: extern "C" fn(usize) -> u32 = std::mem::transmute(symbol(c"zelTracerDestroy"));
        let init: extern "C" fn(u32) -> u32 = std::mem::transmute(symbol(c"zeInit"));
        let mut calls = 0_u32;
        let mut tracer = 0;
        let desc = [1, 0, (&raw mut calls).addr()];
        assert_eq!(enable_layer(), 0);
        assert_eq!(create(&raw const desc, &raw mut tracer), 0);
        assert_eq!((register(tracer, 0, count), register(tracer, 1, count), enable(tracer, 1)), (0, 0, 0));
        assert_eq!((init(1), calls), (0, 4));
        assert_eq!((enable(tracer, 0), init(1), calls, destroy(tracer)), (0, 0, 4, 0));
    }
}
