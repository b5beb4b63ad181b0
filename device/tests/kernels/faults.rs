//! A kernel that accesses memory which is not there.

use std::os::unix::process::ExitStatusExt;

use crate::spirv::scale;
use crate::*;

/// No process has memory there.
const WILD: usize = 0x1000;

/// Whether this process is that of the test; if not, one is run, and must end well. Returns what it wrote to stderr.
fn apart(name: &str) -> Option<String> {
    setup();
    if role().is_some() {
        return None;
    }
    Some(String::from_utf8(run_child(child(name, "device", &[])).stderr).unwrap())
}

fn fault(groups: u32) {
    let setup = setup();
    let kernel = kernel(module(setup, scale), "scale");
    let list = setup.immediate_list(0);
    let other = setup.immediate_list(0);
    let [never, done] = setup.events();
    let memory = numbers(setup, 64);
    set(kernel, 0, &memory);
    set(kernel, 1, &WILD);
    set(kernel, 2, &1_u32);
    // Another thread waits for what will never happen, and another list, too.
    let waiting = never as usize;
    let waiter = std::thread::spawn(move || zeEventHostSynchronize(waiting as Handle, FOREVER));
    ok(zeCommandListAppendWaitOnEvents(other, 1, &raw const never));
    ok(zeKernelSetGroupSize(kernel, 64, 1, 1));
    ok(zeCommandListAppendLaunchKernel(list, kernel, &Extent { x: groups, y: 1, z: 1 }, done, 0, null()));
    assert_eq!(zeEventHostSynchronize(done, FOREVER), DEVICE_LOST);
    assert_eq!(waiter.join().unwrap(), DEVICE_LOST);
    assert_eq!(zeCommandListHostSynchronize(list, FOREVER), DEVICE_LOST);
    assert_eq!(zeCommandListHostSynchronize(other, FOREVER), DEVICE_LOST);
    assert_eq!(zeDeviceGetStatus(setup.device), DEVICE_LOST);
    for ended in [zeCommandListDestroy(list), zeKernelDestroy(kernel), zeMemFree(setup.context, address(memory))] {
        ok(ended);
    }
}

#[test]
fn a_wild_pointer_loses_the_device_in_the_thread_of_a_stream() {
    match apart(this_test!()) {
        None => fault(1),
        Some(text) => {
            assert!(text.contains("ze_soft: kernel scale faulted at address 0x1000 "), "{text}");
            assert!(text.contains("the device is lost"), "{text}");
        }
    }
}

#[test]
fn a_wild_pointer_loses_the_device_in_a_thread_of_the_engine() {
    match apart(this_test!()) {
        None => fault(10_000),
        Some(text) => assert!(text.contains("ze_soft: kernel scale faulted at address 0x"), "{text}"),
    }
}

extern "C" fn leave(_signal: i32) {
    // SAFETY: ends the process, as a handler may.
    unsafe { libc::_exit(42) };
}

/// The application's own fault, with a handler of its own that was there before the engine, and without one.
#[test]
fn a_fault_of_the_application_is_its_own() {
    setup();
    if let Some(role) = role() {
        if role == "handler" {
            // SAFETY: the handler only ends the process.
            unsafe { libc::signal(libc::SIGSEGV, leave as extern "C" fn(i32) as usize) };
        }
        let setup = setup();
        let (kernel, _) = numbering(setup, 64);
        launch(setup.immediate_list(1), kernel, 4, 16);
        // SAFETY: none: this fault is what is tested.
        unsafe { (WILD as *mut u8).write_volatile(1) };
        return;
    }
    let ends = ["handler", "none"].map(|role| child(this_test!(), role, &[]).output().unwrap().status);
    assert_eq!(ends[0].code(), Some(42));
    assert_eq!(ends[1].signal(), Some(libc::SIGSEGV));
}

/// The signals of faults, which the device handles.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The engine's compiler installs handlers for many signals, and its threads could take those of the process.
#[test]
fn signals_stay_with_the_application() {
    let handlers = || {
        (1..32).map(|signal| {
            // SAFETY: an all-zero sigaction is a valid value, and sigaction(2) only writes to it.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, null(), &raw mut action);
                (signal, action.sa_sigaction)
            }
        })
    };
    if apart(this_test!()).is_some() {
        return;
    }
    let before: Vec<_> = handlers().filter(|(signal, _)| !FAULTS.contains(signal)).collect();
    let setup = setup();
    let (kernel, _) = numbering(setup, 1 << 20);
    launch(setup.immediate_list(1), kernel, 1024, 1024);
    let after: Vec<_> = handlers().filter(|(signal, _)| !FAULTS.contains(signal)).collect();
    assert_eq!(before, after);
    // Every thread but those of the test harness blocks what a program sends to another.
    let open = std::fs::read_dir("/proc/self/task").unwrap().filter(|task| {
        let status = std::fs::read_to_string(task.as_ref().unwrap().path().join("status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & (1 << (libc::SIGTERM - 1)) == 0
    });
    assert_eq!(open.count(), 2, "the main thread and that of this test");
}
