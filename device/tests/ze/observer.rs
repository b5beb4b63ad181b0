//! What a tool is told of commands on memory that processes share.

use std::cell::Cell;
use std::sync::Mutex;

use urscope_device::{INTERFACE, interface::Access};

use crate::api::*;
use crate::ipc::{get, open};

const SIZE: usize = 4096;

static TOLD: Mutex<Vec<Access>> = Mutex::new(Vec::new());

thread_local! {
    static CALL: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn current_call() -> u64 {
    CALL.get()
}

extern "C" fn executed(access: &Access) {
    TOLD.lock().unwrap().push(*access);
}

/// The accesses since the last time: call, first byte, bytes of a row, from row to row, rows, and what it did.
fn told() -> Vec<[u64; 6]> {
    let shown = |access: Access| {
        let Access { call, offset, length, pitch, rows, access: kind, .. } = access;
        assert!(access.begin <= access.end && access.memory != 0);
        [call, offset, length, pitch, rows, kind]
    };
    std::mem::take(&mut *TOLD.lock().unwrap()).into_iter().map(shown).collect()
}

#[test]
fn a_tool_is_told_of_accesses_to_shared_memory_only() {
    alone!();
    (INTERFACE.observe_commands)(current_call, executed);
    let (setup, list) = Setup::with_list(1);
    let own = setup.device_memory(SIZE);
    let shared = setup.device_memory(SIZE);
    CALL.set(1);
    copy(list, shared, own, SIZE);
    assert!(told().is_empty(), "no process shares it yet");
    let opened = open(setup, get(setup, shared));
    let inside = opened.wrapping_byte_add(100);
    copy(list, inside, own, 20);
    CALL.set(2);
    copy(list, own, shared, SIZE);
    ok(zeCommandListAppendMemoryFill(list, shared, c"x".as_ptr().cast(), 1, 7, null_mut(), 0, null()));
    assert_eq!(told(), [[1, 100, 20, 20, 1, 1], [2, 0, 4096, 4096, 1, 0], [2, 0, 7, 7, 1, 1]]);
    CALL.set(0);
    copy(list, shared, own, SIZE);
    assert_eq!(told(), [[0, 0, 4096, 4096, 1, 1]], "the tool does not know the call");
}

#[test]
fn rows_and_executions_are_told_one_by_one() {
    alone!();
    (INTERFACE.observe_commands)(current_call, executed);
    let setup = Setup::new();
    let queue = setup.queue(1);
    let list = setup.regular_list();
    let own = setup.device_memory(SIZE);
    let shared = setup.device_memory(SIZE);
    get(setup, shared);
    let region = |x, height, depth| CopyRegion { origin_x: x, origin_y: 0, origin_z: 0, width: 16, height, depth };
    let append = |to: CopyRegion, slice: u32| {
        let from = CopyRegion { origin_x: 0, ..to };
        ok(zeCommandListAppendMemoryCopyRegion(
            list,
            shared,
            &raw const to,
            64,
            slice,
            own,
            &raw const from,
            16,
            0,
            null_mut(),
            0,
            null(),
        ));
    };
    CALL.set(5);
    append(region(32, 4, 1), 0);
    append(region(0, 4, 2), 256);
    append(region(0, 2, 2), 1024);
    CALL.set(6);
    ok(zeCommandListClose(list));
    for _ in 0..2 {
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut()));
        let rows = [[5, 32, 16, 64, 4, 1], [5, 0, 16, 64, 8, 1], [5, 0, 16, 64, 2, 1], [5, 1024, 16, 64, 2, 1]];
        assert_eq!(told(), rows);
    }
}

#[test]
fn mapped_physical_memory_is_shared_once_it_is_exported() {
    alone!();
    (INTERFACE.observe_commands)(current_call, executed);
    let (setup, list) = Setup::with_list(1);
    let memory = setup.exportable(2 * SIZE);
    let base = setup.reserve(2 * SIZE);
    ok(zeVirtualMemMap(setup.context, base, SIZE, memory, SIZE, 1));
    CALL.set(1);
    let fill = || {
        let at = base.wrapping_byte_add(8);
        ok(zeCommandListAppendMemoryFill(list, at, c"x".as_ptr().cast(), 1, 4, null_mut(), 0, null()));
    };
    fill();
    assert!(told().is_empty());
    crate::physical::export(setup, memory);
    fill();
    assert_eq!(told(), [[1, SIZE as u64 + 8, 4, 4, 1, 1]]);
}
