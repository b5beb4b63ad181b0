//! Shared event pools and their slots.

use super::*;

#[test]
fn the_events_of_a_shared_pool_are_the_same_in_both_processes() {
    if role().is_some() {
        return serve();
    }
    let mut endpoint = Endpoint::new();
    let pool = pool(endpoint.setup, 0b11, 200);
    endpoint.event = event_of(pool, 1);
    let other = event_of(pool, 199);
    ok(endpoint.execute(b'h'));
    let handle = get_pool(pool);
    let mut peer = Peer::serve(this_test!(), b'p', &handle.data);
    // Opening resets nothing; the reset of the other process does.
    peer.execute_all("qr");
    assert_eq!([endpoint.execute(b'q'), peer.request(b't')], [NOT_READY; 2]);
    for _ in 0..3 {
        let event = endpoint.event as usize;
        let setup = endpoint.setup;
        let waiter = thread::spawn(move || (zeEventHostSynchronize(event as Handle, FOREVER), now(setup)));
        ok(endpoint.execute(b'd'));
        assert_eq!(endpoint.execute(b'L'), NOT_READY);
        let signalled = now(endpoint.setup);
        peer.execute_all("h");
        let (result, returned) = waiter.join().unwrap();
        ok(result);
        ok(endpoint.execute(b'l'));
        assert!(returned >= signalled && endpoint.waited_until() >= signalled);
        peer.execute_all("r");
        peer.execute_all("d");
        assert_eq!(peer.request(b'L'), NOT_READY);
        let signalled = now(endpoint.setup);
        ok(endpoint.execute(b's'));
        peer.execute_all("lw");
        assert!(peer.waited_until() >= signalled);
        ok(endpoint.execute(b'r'));
    }
    assert_eq!(zeEventQueryStatus(other), NOT_READY);
    // After the last put no process can open it; what is open stays open.
    ok(zeEventPoolPutIpcHandle(endpoint.setup.context, handle));
    let late = zeEventPoolOpenIpcHandle(endpoint.setup.context, handle, &mut null_mut());
    assert_eq!(late, OUT_OF_DEVICE_MEMORY);
    ok(zeEventPoolDestroy(pool));
    peer.execute_all("hX");
    ok(endpoint.execute(b'q'));
    peer.end();
}

#[test]
fn the_opener_closes_a_pool_and_the_creator_destroys_it() {
    let setup = Setup::new();
    let plain = pool(setup, 0b1, 2);
    let shared = pool(setup, 0b111, 2);
    let mut handle: IpcHandle = zeroed();
    assert_eq!(zeEventPoolGetIpcHandle(plain, &raw mut handle), INVALID_SYNCHRONIZATION_OBJECT);
    assert_eq!(zeEventPoolGetIpcHandle(shared, null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeEventPoolGetIpcHandle(null_mut(), &raw mut handle), INVALID_NULL_HANDLE);
    let opened = make(|out| zeEventPoolOpenIpcHandle(setup.context, get_pool(shared), out));
    let flags = value(|out| zeEventPoolGetFlags(opened, out));
    assert_eq!(flags, 0b111);
    assert_eq!(zeEventPoolGetIpcHandle(opened, &raw mut handle), INVALID_ARGUMENT);
    assert_eq!(zeEventPoolDestroy(opened), INVALID_ARGUMENT);
    assert_eq!([zeEventPoolCloseIpcHandle(plain), zeEventPoolCloseIpcHandle(shared)], [INVALID_ARGUMENT; 2]);
    // Each pool has its own slots; the state is shared, with its timestamps.
    let one = event_of(shared, 0);
    let two = event_of(opened, 0);
    let mut result: KernelTimestampResult = zeroed();
    assert_eq!(zeEventQueryKernelTimestamp(two, &raw mut result), NOT_READY);
    let list = setup.immediate_list(1);
    ok(zeCommandListAppendBarrier(list, one, 0, null()));
    ok(zeEventQueryKernelTimestamp(two, &raw mut result));
    assert!(result.global.kernel_start > 0 && result.global.kernel_end >= result.global.kernel_start);
    ok(zeEventPoolCloseIpcHandle(opened));
    assert_eq!(zeEventPoolCloseIpcHandle(opened), INVALID_ARGUMENT);
    ok(zeEventQueryStatus(two));
    ok(zeEventDestroy(two));
    ok(zeEventDestroy(one));
    // The new event in a slot is not signalled.
    let again = event_of(shared, 0);
    assert_eq!(zeEventQueryStatus(again), NOT_READY);
    ok(zeEventDestroy(again));
    ok(zeEventPoolDestroy(shared));
    let desc = EventPoolDesc { flags: 0b1_0000, count: 1, ..zeroed() };
    let mut out = null_mut();
    assert_eq!(zeEventPoolCreate(setup.context, &raw const desc, 0, null(), &raw mut out), INVALID_ENUMERATION);
}
