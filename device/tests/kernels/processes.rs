//! What the engine is to the process that it is in: not there without modules, and no obstacle to its end.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::spirv::{empty, number};
use crate::*;

/// Whether this process has mapped the engine, and how many threads it has.
fn engine() -> (bool, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (maps.contains("libintelocl.so"), std::fs::read_dir("/proc/self/task").unwrap().count())
}

#[test]
fn a_process_without_modules_has_no_engine() {
    const NAME: &str = "processes::a_process_without_modules_has_no_engine";
    let setup = setup();
    if role().is_none() {
        run_child(child(NAME, "device", &[]));
        return;
    }
    let (from, to) = (setup.device_memory(4096), setup.device_memory(4096));
    let list = setup.immediate_list(0);
    copy(list, to, from, 4096);
    ok(zeCommandListHostSynchronize(list, FOREVER));
    let mut properties: layout::device::DeviceModuleProperties = zeroed();
    ok(zeDeviceGetModuleProperties(setup.device, &raw mut properties));
    // The main thread, that of this test and that of the list.
    assert_eq!(engine(), (false, 3));
    module(setup, empty);
    let (is_there, threads) = engine();
    assert!(is_there && threads > 3, "{threads} threads");
}

/// The child runs the exit handlers, those of the engine among them.
#[test]
fn a_forked_child_of_a_process_with_kernels_exits() {
    const NAME: &str = "processes::a_forked_child_of_a_process_with_kernels_exits";
    let setup = setup();
    if role().is_none() {
        run_child(child(NAME, "device", &[]));
        return;
    }
    let kernel = kernel(module(setup, number), "number");
    let memory = numbers(setup, 1 << 20);
    set(kernel, 0, &memory);
    let list = setup.immediate_list(0);
    for round in 0..20 {
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
    const NAME: &str = "processes::a_signal_ends_a_process_whose_kernels_run";
    if role().is_some() {
        // A shell without job control starts its background processes with SIGINT ignored, and theirs inherit it.
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the default action of the signal, before anything else runs.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    let setup = setup();
    if role().is_some() {
        let kernel = kernel(module(setup, number), "number");
        let memory = numbers(setup, 1 << 20);
        set(kernel, 0, &memory);
        let list = setup.immediate_list(1);
        launch(list, kernel, 1024, 1024);
        println!("\nrunning kernels");
        loop {
            launch(list, kernel, 1024, 1024);
        }
    }
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let mut process = child(NAME, "device", &[]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "running kernels"));
        // SAFETY: the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(process.id() as i32, signal) }, 0);
        assert_eq!(process.wait().unwrap().signal(), Some(signal));
    }
}
