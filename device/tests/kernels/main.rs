//! Modules and kernels through the C functions of the device, on the engine of a SYCL release.
//!
//! The kernels are assembled here. A test that needs environment variables or may end its process starts this binary
//! again with a role.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[allow(dead_code, reason = "this program uses a part of it")]
#[path = "../ze/api.rs"]
mod api;
mod spirv;

mod arguments;
mod faults;
mod launches;
mod modules;
mod mutable;
mod processes;

use std::{ffi::CString, path::Path, process::Command, sync::OnceLock};

use api::*;
use spirv::Assembler;

/// The release whose engine is used: the set-up installs one for it.
const RELEASE: &str = "2026.1.2";

/// A context and a device, in a process with an engine.
fn setup() -> Setup {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        if std::env::var_os("ZE_SOFT_ENGINE").is_none() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
            let made = Command::new(root.join("scripts/setup")).args(["--runtime", RELEASE]).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let engine = root.join("target/runtime").join(RELEASE).join("lib/libintelocl.so");
            // SAFETY: every test of this program begins here, so no other thread reads the environment yet.
            unsafe { std::env::set_var("ZE_SOFT_ENGINE", engine) };
        }
    });
    Setup::new()
}

/// The SPIR-V that `write` assembles.
fn assembled(write: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    let mut asm = Assembler::new();
    write(&mut asm);
    asm.finish()
}

/// A module of what `write` assembles.
fn module(setup: Setup, write: impl FnOnce(&mut Assembler)) -> Handle {
    module_of(setup, &assembled(write))
}

fn describe(code: &[u8]) -> ModuleDesc {
    ModuleDesc { input_size: code.len(), input: code.as_ptr(), ..zeroed() }
}

/// A module of SPIR-V. If it cannot be built, the test fails with the log.
fn module_of(setup: Setup, code: &[u8]) -> Handle {
    let desc = describe(code);
    let mut module = null_mut();
    let mut log = null_mut();
    let result = zeModuleCreate(setup.context, setup.device, &raw const desc, &raw mut module, &raw mut log);
    assert_eq!(result, SUCCESS, "{result:#x}: {}", text_of(log));
    ok(zeModuleBuildLogDestroy(log));
    module
}

/// The text of a log.
fn text_of(log: Handle) -> String {
    let mut size = 0;
    ok(zeModuleBuildLogGetString(log, &raw mut size, null_mut()));
    let mut bytes = vec![0_u8; size];
    ok(zeModuleBuildLogGetString(log, &raw mut size, bytes.as_mut_ptr().cast()));
    assert_eq!(bytes.pop(), Some(0));
    String::from_utf8(bytes).unwrap()
}

/// A kernel of a module.
fn kernel(module: Handle, name: &str) -> Handle {
    let name = CString::new(name).unwrap();
    make(|kernel| zeKernelCreate(module, &KernelDesc { name: name.as_ptr(), ..zeroed() }, kernel))
}

/// Sets an argument.
#[track_caller]
fn set<T>(kernel: Handle, index: u32, value: &T) {
    ok(zeKernelSetArgumentValue(kernel, index, size_of::<T>(), std::ptr::from_ref(value).cast()));
}

/// Launches `groups` groups of `size` work items in a row.
fn launch(list: Handle, kernel: Handle, groups: u32, size: u32) {
    ok(zeKernelSetGroupSize(kernel, size, 1, 1));
    ok(append!(zeCommandListAppendLaunchKernel(list, kernel, &Extent { x: groups, y: 1, z: 1 })));
}

/// What a kernel, whose only argument is a pointer, stores in `out` with `count` work items.
fn stored<'a>(list: Handle, kernel: Handle, out: *mut u32, count: usize) -> &'a [u32] {
    at(out, count).fill(7);
    set(kernel, 0, &out);
    launch(list, kernel, 1, count as u32);
    at(out, count)
}

/// Shared memory for `count` numbers, all 0.
fn numbers(setup: Setup, count: usize) -> *mut u32 {
    setup.device_memory(count * 4).cast()
}

/// A kernel that numbers its work items in memory for `count` numbers.
fn numbering(setup: Setup, count: usize) -> (Handle, *mut u32) {
    let kernel = kernel(module(setup, spirv::number), "number");
    let memory = numbers(setup, count);
    set(kernel, 0, &memory);
    (kernel, memory)
}

/// The numbers at a pointer.
fn at<'a>(pointer: *mut u32, count: usize) -> &'a mut [u32] {
    // SAFETY: the tests pass live allocations of at least this size, and access them from one thread at a time.
    unsafe { std::slice::from_raw_parts_mut(pointer, count) }
}

/// Any pointer as an argument of a C function.
fn address<T>(pointer: *mut T) -> *mut c_void {
    pointer.cast()
}
