//! Handles of events: which events have one, what it opens, and which bytes are refused.

use std::os::fd::AsRawFd;

use super::*;
use crate::ipc::{number_in, with_number};
use crate::passing;

#[test]
fn an_event_can_be_opened_in_its_own_process_and_many_times() {
    let setup = Setup::new();
    let list = setup.immediate_list(2);
    let event = setup.shared_event();
    let first = open(setup, get(event));
    let second = open(setup, get(event));
    assert!(first != second && first != event);
    let [gate] = setup.events();
    for signalled in [event, first, second] {
        ok(zeEventHostReset(gate));
        ok(zeCommandListAppendBarrier(list, signalled, 1, &raw const gate));
        assert_eq!([event, first, second].map(zeEventQueryStatus), [NOT_READY; 3]);
        ok(zeEventHostSignal(gate));
        assert_eq!([event, first, second].map(|event| zeEventHostSynchronize(event, FOREVER)), [SUCCESS; 3]);
    }
    ok(zeEventCounterBasedCloseIpcHandle(first));
    assert_eq!(zeEventCounterBasedCloseIpcHandle(first), INVALID_ARGUMENT);
    ok(zeEventDestroy(event));
    ok(zeCommandListAppendSignalEvent(list, second));
    ok(zeEventHostSynchronize(second, FOREVER));
    ok(zeEventDestroy(second));
    ok(zeCommandListDestroy(list));
}

#[test]
fn only_events_created_for_sharing_are_shared_and_closed() {
    let setup = Setup::new();
    let [flag] = setup.events();
    let plain = setup.counter_event();
    let shared = setup.shared_event();
    let opened = open(setup, get(shared));
    let mut handle: IpcHandle = zeroed();
    for event in [flag, plain, opened] {
        assert_eq!(zeEventCounterBasedGetIpcHandle(event, &raw mut handle), INVALID_ARGUMENT);
    }
    assert_eq!(handle.data, [0; 64]);
    assert_eq!(zeEventCounterBasedGetIpcHandle(null_mut(), &raw mut handle), INVALID_NULL_HANDLE);
    assert_eq!(zeEventCounterBasedGetIpcHandle(shared, null_mut()), INVALID_NULL_POINTER);
    for event in [flag, plain, shared] {
        assert_eq!(zeEventCounterBasedCloseIpcHandle(event), INVALID_ARGUMENT);
        assert_ne!(zeEventQueryStatus(event), INVALID_ARGUMENT);
    }
    assert_eq!([zeEventHostSignal(opened), zeEventHostReset(opened)], [INVALID_ARGUMENT; 2]);
    let mut result: KernelTimestampResult = zeroed();
    assert_eq!(zeEventQueryKernelTimestamp(opened, &raw mut result), NOT_READY);
    // An event cannot be shared and have timestamps.
    for flags in [0x1f, 0x2f, 0x3f] {
        let desc = EventCounterBasedDesc { flags, ..zeroed() };
        let mut out = null_mut();
        let created = zeEventCounterBasedCreate(setup.context, setup.device, &raw const desc, &raw mut out);
        assert_eq!(created, INVALID_ARGUMENT);
    }
    let mut flags = 0;
    let mut value = 0;
    let mut address = 0;
    for (event, expected) in [(plain, 0x7), (shared, 0xf), (opened, 0xf)] {
        ok(zeEventGetCounterBasedFlags(event, &raw mut flags));
        assert_eq!(flags, expected);
    }
    assert_eq!(zeEventGetCounterBasedFlags(flag, &raw mut flags), INVALID_ARGUMENT);
    // The address of the counter, and the value to wait for.
    let list = setup.immediate_list(1);
    ok(zeCommandListAppendSignalEvent(list, opened));
    ok(zeEventCounterBasedGetDeviceAddress(shared, &raw mut value, &raw mut address));
    assert_eq!((value, bytes(address as *const c_void, 8)[0]), (1, 1));
    assert_eq!(zeEventCounterBasedGetDeviceAddress(flag, &raw mut value, &raw mut address), INVALID_ARGUMENT);
    assert_eq!(zeEventCounterBasedGetDeviceAddress(plain, &raw mut value, &raw mut address), UNSUPPORTED_FEATURE);
}

#[test]
fn a_handle_may_have_the_descriptor_that_its_receiver_was_sent() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        let socket = passing::connect(u32::from_ne_bytes(pipe.receive()));
        // Only root may fetch a descriptor of this process now: others open what it sends. SAFETY: plain numbers.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        let event = setup.shared_event();
        let pool = pool(setup, 0b11, 4);
        let in_pool = event_of(pool, 3);
        for handle in [get(event), get_pool(pool)] {
            passing::send(&socket, number_in(handle));
            pipe.send(&handle.data);
        }
        pipe.receive::<1>();
        let list = setup.immediate_list(1);
        ok(zeCommandListAppendSignalEvent(list, event));
        ok(zeCommandListAppendSignalEvent(list, in_pool));
        pipe.send(b"s");
        pipe.receive::<1>();
        return;
    }
    let (listener, number) = passing::listen();
    let mut peer = Peer::start(this_test!(), "producer");
    peer.send(&number.to_ne_bytes());
    let (socket, _) = listener.accept().unwrap();
    let [(of_event, first), (of_pool, second)] = [(); 2].map(|()| {
        let file = passing::receive(&socket);
        let data = peer.receive();
        (with_number(IpcHandle { data }, file.as_raw_fd()), file)
    });
    let event = open(setup, of_event);
    let pool = make(|out| zeEventPoolOpenIpcHandle(setup.context, of_pool, out));
    let in_pool = event_of(pool, 3);
    assert_eq!(zeEventQueryStatus(in_pool), NOT_READY);
    // Another file of this process is not mistaken for that of the pool.
    let other = std::fs::File::open("/proc/self/exe").unwrap();
    let wrong = with_number(of_pool, other.as_raw_fd());
    let mut out = null_mut();
    assert_eq!(zeEventPoolOpenIpcHandle(setup.context, wrong, &raw mut out), OUT_OF_DEVICE_MEMORY);
    drop((first, second));
    peer.send(b"!");
    peer.receive::<1>();
    ok(zeEventHostSynchronize(event, FOREVER));
    ok(zeEventHostSynchronize(in_pool, FOREVER));
    peer.send(b"!");
    peer.end();
    ok(zeEventDestroy(in_pool));
    ok(zeEventPoolCloseIpcHandle(pool));
    ok(zeEventCounterBasedCloseIpcHandle(event));
}

#[test]
fn damaged_and_foreign_handles_are_refused_without_leaks() {
    alone!();
    let setup = Setup::new();
    let event = setup.shared_event();
    let pool = pool(setup, 0b11, 4);
    let handle = get(event);
    let pool_handle = get_pool(pool);
    let memory = setup.device_memory(4096);
    let memory_handle: IpcHandle = value(|out| zeMemGetIpcHandle(setup.context, memory, out));
    let refused_pool = |data| {
        let mut out = null_mut();
        let result = zeEventPoolOpenIpcHandle(setup.context, IpcHandle { data }, &raw mut out);
        assert!(out.is_null());
        result
    };
    let before = (open_descriptors(), mappings());
    for byte in (0..4).chain(8..64) {
        for change in [0x01, 0x80, 0xff] {
            let mut one = handle.data;
            let mut two = pool_handle.data;
            one[byte] ^= change;
            two[byte] ^= change;
            assert_eq!([refused(setup, one), refused_pool(two)], [OUT_OF_DEVICE_MEMORY; 2], "byte {byte}");
        }
    }
    for data in [[0; 64], [0x41; 64], [0xff; 64], memory_handle.data] {
        assert_eq!([refused(setup, data), refused_pool(data)], [OUT_OF_DEVICE_MEMORY; 2]);
    }
    // Each handle opens its own type of object only.
    assert_eq!([refused(setup, pool_handle.data), refused_pool(handle.data)], [OUT_OF_DEVICE_MEMORY; 2]);
    let mut out = null_mut();
    for data in [handle.data, pool_handle.data] {
        let foreign = IpcHandle { data };
        let result = zeMemOpenIpcHandle(setup.context, setup.device, foreign, 0, &raw mut out);
        assert_eq!(result, INVALID_ARGUMENT);
        ok(zeMemPutIpcHandle(setup.context, foreign));
    }
    assert_eq!((open_descriptors(), mappings()), before);
    ok(zeEventCounterBasedCloseIpcHandle(open(setup, handle)));
    ok(zeEventDestroy(event));
    assert_eq!(refused(setup, handle.data), OUT_OF_DEVICE_MEMORY);
    assert_eq!(zeEventCounterBasedOpenIpcHandle(setup.context, handle, null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeEventCounterBasedOpenIpcHandle(null_mut(), handle, &raw mut out), INVALID_NULL_HANDLE);
}

#[test]
fn a_producer_that_must_not_be_traced_is_an_error() {
    match role().as_deref() {
        Some("other") => {
            // SAFETY: plain numbers. Only root may trace a process that is not dumpable.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
            serve();
        }
        Some(_) => {
            let setup = Setup::new();
            let pipe = Pipe::open();
            // SAFETY: plain numbers. Root loses the permission to trace other processes; any other user is unaffected.
            unsafe { libc::setuid(65_534) };
            pipe.send(&refused(setup, pipe.receive()).to_ne_bytes());
        }
        None => {
            let mut maker = Peer::serve(this_test!(), b'm', &[]);
            let mut opener = Peer::start(this_test!(), "opener");
            opener.send(&maker.receive::<64>());
            assert_eq!(u32::from_ne_bytes(opener.receive()), OUT_OF_DEVICE_MEMORY);
            opener.end();
            maker.end();
        }
    }
}

#[test]
fn the_function_names_of_intels_driver_work_too() {
    let setup = Setup::new();
    let find = |name: &std::ffi::CStr| {
        let mut address = null();
        ok(zeDriverGetExtensionFunctionAddress(driver(), name.as_ptr(), &raw mut address));
        address
    };
    // SAFETY: the signatures are those of Intel's driver headers, which the device implements.
    let (create, get, open, close) = unsafe {
        use std::mem::transmute as function;
        (
            function::<*const c_void, extern "C" fn(Handle, Handle, *const EventCounterBasedDesc, *mut Handle) -> u32>(
                find(c"zexCounterBasedEventCreate2"),
            ),
            function::<*const c_void, extern "C" fn(Handle, *mut IpcHandle) -> u32>(find(
                c"zexCounterBasedEventGetIpcHandle",
            )),
            function::<*const c_void, extern "C" fn(Handle, IpcHandle, *mut Handle) -> u32>(find(
                c"zexCounterBasedEventOpenIpcHandle",
            )),
            function::<*const c_void, extern "C" fn(Handle) -> u32>(find(c"zexCounterBasedEventCloseIpcHandle")),
        )
    };
    let desc = EventCounterBasedDesc { s_type: 0x3_001c, flags: 0xf, signal: 4, ..zeroed() };
    let event = make(|out| create(setup.context, setup.device, &raw const desc, out));
    let mut handle: IpcHandle = zeroed();
    ok(get(event, &raw mut handle));
    ok(close(make(|out| open(setup.context, handle, out))));
    ok(zeEventDestroy(event));
}

#[test]
fn many_cycles_leak_no_descriptor_and_no_mapping() {
    match role().as_deref() {
        Some("other") => serve(),
        Some(_) => {
            let mut maker = Peer::serve(this_test!(), b'm', &[]);
            let remote = IpcHandle { data: maker.receive() };
            let setup = Setup::new();
            let list = setup.immediate_list(2);
            let cycle = |round: usize| {
                let event = setup.shared_event();
                let opened = open(setup, get(event));
                ok(zeCommandListAppendSignalEvent(list, opened));
                if round.is_multiple_of(2) {
                    ok(zeEventHostSynchronize(event, FOREVER));
                    ok(zeEventCounterBasedCloseIpcHandle(opened));
                    ok(zeEventDestroy(event));
                } else {
                    ok(zeEventDestroy(event));
                    ok(zeEventHostSynchronize(opened, FOREVER));
                    ok(zeEventCounterBasedCloseIpcHandle(opened));
                }
                if round.is_multiple_of(8) {
                    ok(zeEventCounterBasedCloseIpcHandle(open(setup, remote)));
                    let pool = pool(setup, 0b11, 100);
                    ok(zeEventPoolCloseIpcHandle(make(|out| {
                        zeEventPoolOpenIpcHandle(setup.context, get_pool(pool), out)
                    })));
                    ok(zeEventPoolDestroy(pool));
                }
            };
            let counts = || {
                ok(zeCommandListHostSynchronize(list, FOREVER));
                (open_descriptors(), mappings())
            };
            (0..16).for_each(cycle);
            let before = counts();
            (0..100_000).for_each(cycle);
            assert_eq!(counts(), before);
            maker.end();
        }
        None => drop(run_child(child(this_test!(), "device", &[("ZE_SOFT_MEMORY", "64M")]))),
    }
}
