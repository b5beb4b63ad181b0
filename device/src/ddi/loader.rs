//! The functions of `libze_loader.so.1` beyond the API, so that the static loaders inside the adapters accept this
//! library.
//!
//! The adapters query versions (they reject loaders before 1.8, call `zeInitDrivers` from 1.19.2 on, and warn before
//! 1.21.2), look for the tracing library, and translate loader handles into driver handles. Must never write more
//! versions than the caller has room for.

use crate::ffi::layout::{API_VERSION, ComponentVersion};
use crate::ffi::result::{ZeResult, call};
use crate::ffi::{self, Address, Out, Pointer};

/// The release of the loader that this library replaces.
const VERSION: [i32; 3] = [1, 28, 2];

/// `zeLoaderInit` (ze_loader_api.h). There is nothing to load.
pub extern "C" fn init(_flags: u32) -> ZeResult {
    ZeResult::SUCCESS
}

/// `zelLoaderDriverCheck`. There is one driver, and it works. The static loader of API 1.13, which the adapters of
/// 2025.3 contain, fails without this function; newer ones do not call it.
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

/// `zeLoaderGetTracingHandle`. NULL: there is no tracing library.
pub extern "C" fn get_tracing_handle() -> Pointer {
    Pointer::NULL
}

/// `zelLoaderGetVersion`. The version of the loader that this library replaces.
pub extern "C" fn get_version(version: Out<ComponentVersion>) -> ZeResult {
    call(|| version.write(component()))
}

/// `zelLoaderGetVersions` (ze_loader.h) and `zelLoaderGetVersionsInternal`. There is one component, the loader.
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

/// `zelLoaderTranslateHandle` (ze_loader.h) and `zelLoaderTranslateHandleInternal`. Loader handles are driver handles.
pub extern "C" fn translate_handle(_kind: i32, handle: Address, translated: Out<Address>) -> ZeResult {
    call(|| {
        handle.check()?;
        translated.write(handle)
    })
}

/// `zelGetTracerApiProcAddrTable`. The functions of `tracing` are found by their names only. A loader
/// without its tracing library also returns success and leaves the table unchanged.
pub extern "C" fn get_tracer_table(_version: u32, table: Address) -> ZeResult {
    call(|| table.check())
}

/// `zelSetDriverTeardown` (ze_loader.h). There is no teardown to announce.
pub extern "C" fn set_driver_teardown() -> ZeResult {
    ZeResult::SUCCESS
}

/// `zelCheckIsLoaderInTearDown` (ze_loader.h). The library stays loaded as long as the process lives.
pub extern "C" fn is_in_teardown() -> bool {
    false
}

fn component() -> ComponentVersion {
    ComponentVersion { component_name: ffi::text("loader"), spec_version: API_VERSION, component_lib_version: VERSION }
}
