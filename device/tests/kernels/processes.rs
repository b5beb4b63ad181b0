//! What the engine is to the process that it is in: not there without modules, and no obstacle to its end.

use std::io::{BufRead, BufReader};
use std::os::unix::{ffi::OsStrExt, process::ExitStatusExt};
use std::{path::PathBuf, process::Stdio};

use crate::spirv::{empty, increment, number};
use crate::*;

/// Whether this process has mapped the engine, and how many threads it has.
fn engine() -> (bool, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (maps.contains("libintelocl.so"), std::fs::read_dir("/proc/self/task").unwrap().count())
}

#[test]
fn a_process_without_modules_has_no_engine() {
    let setup = setup();
    alone!();
    let from = setup.device_memory(4096);
    let to = setup.device_memory(4096);
    let list = setup.immediate_list(0);
    copy(list, to, from, 4096);
    ok(zeCommandListHostSynchronize(list, FOREVER));
    let _: DeviceModuleProperties = value(|out| zeDeviceGetModuleProperties(setup.device, out));
    // The main thread, that of this test and that of the list.
    assert_eq!(engine(), (false, 3));
    module(setup, empty);
    let (is_there, threads) = engine();
    assert!(is_there && threads > 3, "{threads} threads");
}

/// The child runs the exit handlers, those of the engine among them.
#[test]
fn a_forked_child_of_a_process_with_kernels_exits() {
    let setup = setup();
    alone!();
    let (kernel, memory) = numbering(setup, 1 << 20);
    let list = setup.immediate_list(0);
    for round in 0..100 {
        launch(list, kernel, 1024, 1024);
        // SAFETY: the child only exits.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: ends the child.
            unsafe { libc::exit(7) };
        }
        let mut status = 0;
        // SAFETY: waitpid writes the status that it is given.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "child {round}: {status:#x}");
    }
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert_eq!(at(memory, 1 << 20)[1_000_000], 1_000_000);
}

#[test]
fn a_signal_ends_a_process_whose_kernels_run() {
    if role().is_some() {
        // A shell without job control starts its background processes with SIGINT ignored, and theirs inherit it.
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the default action of the signal, before anything else runs.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    let setup = setup();
    if role().is_some() {
        let (kernel, _) = numbering(setup, 1 << 20);
        let list = setup.immediate_list(1);
        launch(list, kernel, 1024, 1024);
        println!("\nrunning kernels");
        loop {
            launch(list, kernel, 1024, 1024);
        }
    }
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let mut process = child(this_test!(), "device", &[]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "running kernels"));
        // SAFETY: the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(process.id() as i32, signal) }, 0);
        assert_eq!(process.wait().unwrap().signal(), Some(signal));
    }
}

/// A library in front of the engine, which counts the programs that it makes of SPIR-V.
const COUNTER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int programs;

void *clCreateProgramWithIL(void *context, const void *code, size_t length, int *error) {
  void *(*engines)(void *, const void *, size_t, int *) = dlsym(RTLD_NEXT, "clCreateProgramWithIL");
  programs++;
  return engines(context, code, length, error);
}
"#;

/// Compiles [`COUNTER`] for the engine that the tests use.
fn counter() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("counter.c");
    let library = folder.join("libcounter.so");
    std::fs::write(&source, COUNTER).unwrap();
    let engine = PathBuf::from(std::env::var_os("ZE_SOFT_ENGINE").unwrap());
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).args([&library, &source, &engine]);
    compiler.arg(format!("-Wl,-rpath,{}", engine.parent().unwrap().display()));
    assert!(compiler.status().unwrap().success());
    library
}

/// How many programs the engine of this process has made of SPIR-V.
fn programs() -> i32 {
    let engine = CString::new(std::env::var_os("ZE_SOFT_ENGINE").unwrap().as_bytes()).unwrap();
    // SAFETY: the library stays open, and nothing writes this variable of it now.
    unsafe {
        let library = libc::dlopen(engine.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let place = libc::dlsym(library, c"programs".as_ptr()).cast::<i32>();
        assert!(!place.is_null());
        place.read()
    }
}

#[test]
fn the_same_module_is_compiled_once() {
    let setup = setup();
    alone!(&[("ZE_SOFT_ENGINE", counter().to_str().unwrap())]);
    let code = assembled(number);
    let other = assembled(increment);
    let list = setup.immediate_list(1);
    let out = numbers(setup, 8);
    let runs = |module| {
        let kernel = kernel(module, "number");
        assert_eq!(stored(list, kernel, out, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        ok(zeKernelDestroy(kernel));
    };
    let first = module_of(setup, &code);
    runs(first);
    assert_eq!(programs(), 1);
    let second = module_of(setup, &code);
    runs(second);
    ok(zeModuleDestroy(first));
    ok(zeModuleDestroy(second));
    runs(module_of(setup, &code));
    assert_eq!(programs(), 1);
    module_of(setup, &other);
    assert_eq!(programs(), 2);
    for _ in 0..2 {
        let desc = ModuleDesc { build_flags: c"-ze-opt-disable".as_ptr(), ..describe(&code) };
        runs(make(|module| zeModuleCreate(setup.context, setup.device, &raw const desc, module, null_mut())));
        assert_eq!(programs(), 3);
    }
}
