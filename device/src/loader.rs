//! What `libze_loader.so.1` has beside the API, so that the static loaders inside the adapters take us for a loader.
//!
//! They ask for versions (below 1.8 they refuse, from 1.19.2 they use `zeInitDrivers`, below 1.21.2 they warn), for the
//! tracing library, which is not there, and have handles translated, which here are the driver's own. Must never write
//! more versions than the caller has room for.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::ddi::API_VERSION;
use crate::ffi;
use crate::layout::driver::ComponentVersion;
use crate::result::{Answer, ZeResult, answer};

/// The loader release that this one stands in for.
const VERSION: [i32; 3] = [1, 28, 2];

/// `zeLoaderInit`: there is nothing to load.
pub extern "C" fn init(_flags: u32) -> ZeResult {
    ZeResult::SUCCESS
}

/// `zeLoaderGetTracingHandle`: no tracing library.
pub extern "C" fn get_tracing_handle() -> *mut c_void {
    null_mut()
}

/// `zelLoaderGetVersion`.
pub extern "C" fn get_version(version: *mut ComponentVersion) -> ZeResult {
    answer(|| ffi::write(version, component()))
}

/// `zelLoaderGetVersions` and `zelLoaderGetVersionsInternal`: one component, the loader.
pub extern "C" fn get_versions(count: *mut usize, versions: *mut ComponentVersion) -> ZeResult {
    answer(|| {
        if versions.is_null() {
            return ffi::write(count, 1);
        }
        if ffi::read(count)? == 0 {
            return Ok(());
        }
        ffi::write(versions, component())
    })
}

/// `zelLoaderTranslateHandle` and `zelLoaderTranslateHandleInternal`: loader and driver are one.
pub extern "C" fn translate_handle(_kind: i32, handle: *mut c_void, translated: *mut *mut c_void) -> ZeResult {
    answer(|| {
        if handle.is_null() {
            return Err(ZeResult::INVALID_NULL_POINTER);
        }
        ffi::write(translated, handle)
    })
}

/// `zelGetTracerApiProcAddrTable`: tracing is not offered. Success with an untouched table is what a loader without its
/// tracing library answers too.
pub extern "C" fn get_tracer_table(_version: u32, table: *mut c_void) -> ZeResult {
    answer(|| check(table))
}

/// `zelSetDriverTeardown`.
pub extern "C" fn set_driver_teardown() -> ZeResult {
    ZeResult::SUCCESS
}

fn check(pointer: *mut c_void) -> Answer {
    if pointer.is_null() { Err(ZeResult::INVALID_NULL_POINTER) } else { Ok(()) }
}

fn component() -> ComponentVersion {
    ComponentVersion { component_name: ffi::text("loader"), spec_version: API_VERSION, component_lib_version: VERSION }
}
