//! fork() without exec: what a child may do, and the results that it gets.

use crate::api::*;

/// Forks. The child exits with the status that `child` returns, and the parent returns that status.
fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: these tests run in a process of their own; the child calls the device, which is what is tested, and
    // exits.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = child();
        // SAFETY: exits without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waitpid writes the status that it is given.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "{status:#x}");
    libc::WEXITSTATUS(status)
}

#[test]
fn a_child_of_a_process_that_used_the_device_is_refused_and_can_tear_down() {
    alone!();
    let (setup, list) = Setup::with_list(2);
    let [gate] = setup.events();
    let memory = setup.device_memory(4096);
    ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const gate));
    let code = forked(|| {
        let refused = [
            zeInit(0),
            zeEventHostSynchronize(gate, FOREVER),
            zeCommandListHostSynchronize(list, FOREVER),
            zeCommandListAppendBarrier(list, null_mut(), 0, null()),
        ];
        let ended = [
            zeMemFree(setup.context, memory),
            zeEventDestroy(gate),
            zeCommandListDestroy(list),
            zeContextDestroy(setup.context),
        ];
        i32::from(refused != [UNINITIALIZED; 4]) + 2 * i32::from(ended != [SUCCESS; 4])
    });
    assert_eq!(code, 0);
    // The parent is unaffected.
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    ok(zeEventDestroy(gate));
    ok(zeCommandListDestroy(list));
    setup.free(memory);
}

#[test]
fn a_child_of_a_process_that_did_not_use_the_device_can_use_it() {
    alone!();
    let code = forked(|| {
        let setup = Setup::new();
        let list = setup.immediate_list(2);
        let to = setup.device_memory(100);
        let from = setup.device_memory(100);
        bytes(from, 100).fill(5);
        copy(list, to, from, 100);
        ok(zeCommandListHostSynchronize(list, FOREVER));
        i32::from(bytes(to, 100) != [5; 100])
    });
    assert_eq!(code, 0);
}
