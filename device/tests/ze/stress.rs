//! Many threads at once.

use std::thread;

use crate::api::*;

const THREADS: usize = 8;
const ROUNDS: usize = 200;

#[test]
fn threads_do_not_disturb_each_other() {
    let setup = Setup::new();
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                let list = setup.immediate_list(if number % 2 == 0 { 2 } else { 1 });
                let counter = setup.counter_event();
                let [event] = setup.events();
                for round in 0..ROUNDS {
                    let size = 1 + number * 777 + round * 97;
                    let to = setup.device_memory(size);
                    let from = setup.device_memory(size);
                    let filled = (number * 31 + round) as u8;
                    bytes(from, size).fill(filled);
                    ok(zeCommandListAppendMemoryCopy(list, to, from, size, counter, 0, null()));
                    ok(zeCommandListAppendBarrier(list, event, 1, &raw const counter));
                    ok(zeEventHostSynchronize(event, FOREVER));
                    ok(zeEventHostReset(event));
                    assert!(bytes(to, size).iter().all(|byte| *byte == filled));
                    let handle: IpcHandle = value(|out| zeMemGetIpcHandle(setup.context, to, out));
                    let opened = make(|out| zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, out));
                    assert!(bytes(opened, size).iter().all(|byte| *byte == filled));
                    ok(zeMemCloseIpcHandle(setup.context, opened));
                    ok(zeMemPutIpcHandle(setup.context, handle));
                    setup.free(to);
                    setup.free(from);
                }
                ok(zeCommandListDestroy(list));
            });
        }
    });
}

#[test]
fn a_chain_through_many_lists_runs_in_order() {
    const LINKS: usize = 64;
    let setup = Setup::new();
    let lists: Vec<_> = (0..8).map(|_| setup.immediate_list(2)).collect();
    let events: [_; LINKS] = setup.events();
    let memory = setup.device_memory(LINKS + 1);
    bytes(memory, LINKS + 1)[0] = 0x77;
    let at = |index: usize| (memory as usize + index) as *mut c_void;
    for link in 0..LINKS {
        let signal = events[link];
        let waits = if link == 0 { null_mut() } else { events[link - 1] };
        let count = u32::from(link > 0);
        let list = lists[link * 5 % lists.len()];
        ok(zeCommandListAppendMemoryCopy(list, at(link + 1), at(link), 1, signal, count, &raw const waits));
    }
    ok(zeEventHostSynchronize(events[LINKS - 1], FOREVER));
    assert!(bytes(memory, LINKS + 1).iter().all(|byte| *byte == 0x77));
}

#[test]
fn threads_share_a_reservation_and_an_event() {
    const PAGE: usize = 4096;
    let setup = Setup::new();
    let base = setup.reserve(THREADS * PAGE) as usize;
    let shared = setup.shared_event();
    let handle: IpcHandle = value(|out| zeEventCounterBasedGetIpcHandle(shared, out));
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                let list = setup.immediate_list(2);
                let own = (base + number * PAGE) as *mut c_void;
                let event = make(|out| zeEventCounterBasedOpenIpcHandle(setup.context, handle, out));
                let source = setup.device_memory(PAGE);
                for round in 0..ROUNDS {
                    let memory = setup.physical(PAGE);
                    ok(zeVirtualMemMap(setup.context, own, PAGE, memory, 0, 1));
                    let filled = (number * 31 + round) as u8;
                    bytes(source, PAGE).fill(filled);
                    ok(zeCommandListAppendMemoryCopy(list, own, source, PAGE, event, 0, null()));
                    ok(zeCommandListHostSynchronize(list, FOREVER));
                    ok(zeEventHostSynchronize(event, FOREVER));
                    assert!(bytes(own, PAGE).iter().all(|byte| *byte == filled));
                    ok(zeVirtualMemUnmap(setup.context, own, PAGE));
                    ok(zePhysicalMemDestroy(setup.context, memory));
                }
                setup.free(source);
                ok(zeEventCounterBasedCloseIpcHandle(event));
                ok(zeCommandListDestroy(list));
            });
        }
    });
    ok(zeEventQueryStatus(shared));
    ok(zeEventDestroy(shared));
    ok(zeVirtualMemFree(setup.context, base as *const c_void, THREADS * PAGE));
}
