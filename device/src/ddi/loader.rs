//! What `libze_loader.so.1` has beside the API, so that the static loaders inside the adapters take us for a loader.
//!
//! They ask for versions (below 1.8 they refuse, from 1.19.2 they use `zeInitDrivers`, below 1.21.2 they warn), for the
//! tracing library, which is not there, and have handles translated, which here are the driver's own. Must never write
//! more versions than the caller has room for.

use crate::ddi::API_VERSION;
use crate::ffi::layout::driver::ComponentVersion;
use crate::ffi::result::{ZeResult, call};
use crate::ffi::{self, Address, Out};

/// The loader release that this one stands in for.
const VERSION: [i32; 3] = [1, 28, 2];

/// `zeLoaderInit`: there is nothing to load.
pub extern "C" fn init(_flags: u32) -> ZeResult {
    ZeResult::SUCCESS
}

/// `zelLoaderDriverCheck`: there is one driver, and it is fit for use. The static loader of API 1.13, which the adapters of
/// 2025.3 contain, gives up without this function; the newer ones do not ask any more.
pub extern "C" fn driver_check(
    _flags: u32,
    _desc: Address,
    _ze_global: Address,
    _zes_global: Address,
    _reinit: Address,
    _sysman_only: bool,
) -> ZeResult {
    ZeResult::SUCCESS
}

/// `zeLoaderGetTracingHandle`: no tracing library.
pub extern "C" fn get_tracing_handle() -> Address {
    Address::of(0)
}

/// `zelLoaderGetVersion`.
pub extern "C" fn get_version(version: Out<ComponentVersion>) -> ZeResult {
    call(|| version.write(component()))
}

/// `zelLoaderGetVersions` and `zelLoaderGetVersionsInternal`: one component, the loader.
pub extern "C" fn get_versions(count: Out<usize>, versions: Out<ComponentVersion>) -> ZeResult {
    call(|| {
        if versions.is_null() {
            return count.write(1);
        }
        if count.read()? == 0 {
            return Ok(());
        }
        versions.write(component())
    })
}

/// `zelLoaderTranslateHandle` and `zelLoaderTranslateHandleInternal`: loader and driver are one.
pub extern "C" fn translate_handle(_kind: i32, handle: Address, translated: Out<Address>) -> ZeResult {
    call(|| {
        handle.check()?;
        translated.write(handle)
    })
}

/// `zelGetTracerApiProcAddrTable`: tracing is not offered. Success with an untouched table is what a loader without its
/// tracing library answers too.
pub extern "C" fn get_tracer_table(_version: u32, table: Address) -> ZeResult {
    call(|| table.check())
}

/// `zelSetDriverTeardown`.
pub extern "C" fn set_driver_teardown() -> ZeResult {
    ZeResult::SUCCESS
}

fn component() -> ComponentVersion {
    ComponentVersion { component_name: ffi::text("loader"), spec_version: API_VERSION, component_lib_version: VERSION }
}
