//! `cuGetProcAddress`, by which libcudart and most libraries find the other functions, and what is refused.

use std::{collections::BTreeSet, ffi::c_char, ptr};

use parking_lot::Mutex;

use crate::arguments::{In, Out};
use crate::exports::{Function, functions};
use crate::result::{Code, Outcome};
use crate::{context, event, ipc, memory, physical, pool, query, result, rows, stream};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

/// Why there is no address (`CUdriverProcAddressQueryResult`).
const NOT_FOUND: u32 = 1;
const VERSION_NOT_SUFFICIENT: u32 = 2;

fn all() -> impl Iterator<Item = &'static Function> {
    let modules = [
        FUNCTIONS,
        refused::FUNCTIONS,
        context::FUNCTIONS,
        event::FUNCTIONS,
        ipc::FUNCTIONS,
        memory::FUNCTIONS,
        physical::FUNCTIONS,
        pool::FUNCTIONS,
        query::FUNCTIONS,
        result::FUNCTIONS,
        rows::FUNCTIONS,
        stream::FUNCTIONS,
    ];
    modules.into_iter().flatten()
}

/// Writes the address of the newest form of a function that a version of CUDA has, or NULL: `NOT_FOUND` if there is no
/// place for the status, too.
fn find(name: In<c_char>, to: Out<*const ()>, version: i32, flags: u64, status: Option<Out<u32>>) -> Outcome {
    let name = name.text()?;
    let is_told = status.is_some();
    to.check()?;
    let forms = || all().filter(|function| function.name == name);
    let found = forms().filter(|function| function.since <= version).max_by_key(|function| function.since);
    if let Some(status) = status {
        let missing = if forms().next().is_some() { VERSION_NOT_SUFFICIENT } else { NOT_FOUND };
        status.write(if found.is_some() { 0 } else { missing })?;
    }
    if found.is_none() {
        urscope_device::note(&format!("there is no {name} of CUDA {version}"));
    }
    let per_thread = found.and_then(|function| function.per_thread).filter(|_| flags & PER_THREAD != 0);
    let address = per_thread.or(found.map(|function| function.address));
    to.write(address.unwrap_or(ptr::null()))?;
    if address.is_some() || is_told { Ok(()) } else { Err(Code::NOT_FOUND) }
}

functions! {
    11030 "cuGetProcAddress" cuGetProcAddress(name: In<c_char>, to: Out<*const ()>, version: i32, flags: u64) {
        find(name, to, version, flags, None)
    }
    12000 "cuGetProcAddress" cuGetProcAddress_v2(
        name: In<c_char>, to: Out<*const ()>, version: i32, flags: u64, status: Out<u32>,
    ) {
        find(name, to, version, flags, Some(status).filter(|status| status.check().is_ok()))
    }
    3000 "cuGetExportTable" cuGetExportTable(table: Out<*const ()>, _id: In<[u8; 16]>) {
        table.write(ptr::null())?;
        tell("cuGetExportTable", "its tables are not documented, and the CUDA runtime (libcudart) does not start without them");
        Err(Code::NOT_FOUND)
    }
}

/// Says once on stderr that this library refuses a function, and why.
fn tell(name: &'static str, why: &str) {
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().insert(name) {
        eprintln!("urscope's stand-in for the CUDA driver: {name} is refused: {why}");
    }
}

/// Refuses what needs kernels.
fn refuse(name: &'static str) -> Outcome {
    tell(name, "it runs no kernels");
    Err(Code::NOT_SUPPORTED)
}

/// What loads or launches kernels.
mod refused {
    use super::{functions, refuse};

    functions! {
        2000 "cuModuleLoad" cuModuleLoad() {
            refuse("cuModuleLoad")
        }
        2000 "cuModuleLoadData" cuModuleLoadData() {
            refuse("cuModuleLoadData")
        }
        2010 "cuModuleLoadDataEx" cuModuleLoadDataEx() {
            refuse("cuModuleLoadDataEx")
        }
        2000 "cuModuleLoadFatBinary" cuModuleLoadFatBinary() {
            refuse("cuModuleLoadFatBinary")
        }
        2000 "cuModuleGetFunction" cuModuleGetFunction() {
            refuse("cuModuleGetFunction")
        }
        12000 "cuLibraryLoadData" cuLibraryLoadData() {
            refuse("cuLibraryLoadData")
        }
        12000 "cuLibraryGetKernel" cuLibraryGetKernel() {
            refuse("cuLibraryGetKernel")
        }
        12000 "cuLibraryLoadFromFile" cuLibraryLoadFromFile() {
            refuse("cuLibraryLoadFromFile")
        }
        4000 "cuLaunchKernel" cuLaunchKernel() / cuLaunchKernel_ptsz {
            refuse("cuLaunchKernel")
        }
        11060 "cuLaunchKernelEx" cuLaunchKernelEx() / cuLaunchKernelEx_ptsz {
            refuse("cuLaunchKernelEx")
        }
        9000 "cuLaunchCooperativeKernel" cuLaunchCooperativeKernel() / cuLaunchCooperativeKernel_ptsz {
            refuse("cuLaunchCooperativeKernel")
        }
    }
}
