//! Memory shared between processes.
//!
//! The other process is this binary in another role. The two communicate through its standard streams.

use std::{io::Read, os::fd::AsRawFd};

use crate::api::*;
use crate::memory::describe;
use crate::passing::fetch;
use crate::peer::{Peer, Pipe};

const SIZE: usize = 70_001;

pub(crate) fn get(setup: Setup, pointer: *const c_void) -> IpcHandle {
    value(|out| zeMemGetIpcHandle(setup.context, pointer, out))
}

/// The descriptor in a handle.
pub(crate) fn number_in(handle: IpcHandle) -> i32 {
    i32::from_ne_bytes(handle.data[..4].try_into().unwrap())
}

/// This handle with another descriptor.
pub(crate) fn with_number(mut handle: IpcHandle, number: i32) -> IpcHandle {
    handle.data[..4].copy_from_slice(&number.to_ne_bytes());
    handle
}

pub(crate) fn open(setup: Setup, handle: IpcHandle) -> *mut c_void {
    make(|out| zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, out))
}

/// The code of an open that must fail without writing its result.
#[track_caller]
pub(crate) fn refused(setup: Setup, handle: IpcHandle) -> u32 {
    let mut out = null_mut();
    let result = zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, &raw mut out);
    assert!(out.is_null());
    result
}

/// A producer that exports one allocation of `SIZE` bytes filled with 1, and executes commands: `f` frees, `p` puts,
/// any other letter returns the first byte.
fn produce() {
    let setup = Setup::new();
    let pipe = Pipe::open();
    let memory = setup.device_memory(SIZE);
    bytes(memory, SIZE).fill(1);
    let handle = get(setup, memory);
    pipe.send(&handle.data);
    let mut order = [0];
    while pipe.from.lock().read(&mut order).unwrap() == 1 {
        match order {
            [b'f'] => setup.free(memory),
            [b'p'] => ok(zeMemPutIpcHandle(setup.context, handle)),
            _ => {}
        }
        pipe.send(&[if order == [b'f'] { 0 } else { bytes(memory, 1)[0] }]);
    }
}

#[test]
fn two_processes_see_the_same_memory() {
    let mut peer = peer!(produce());
    let setup = Setup::new();
    let handle = IpcHandle { data: peer.receive() };
    let memory = open(setup, handle);
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    bytes(memory, SIZE).fill(2);
    peer.send(b"?");
    assert_eq!(peer.receive(), [2]);
    let (properties, device) = describe(setup, memory);
    assert_eq!((properties.kind, device), (2, setup.device));
    assert_eq!(range(setup, (memory as usize + 9) as *const c_void), (memory, SIZE));
    let list = setup.immediate_list(1);
    let own = setup.device_memory(SIZE);
    copy(list, own, memory, SIZE);
    assert!(bytes(own, SIZE).iter().all(|byte| *byte == 2));
    ok(zeMemCloseIpcHandle(setup.context, memory));
    peer.end();
}

#[test]
fn a_descriptor_that_was_fetched_already_is_used_and_left_open() {
    let mut peer = peer!(produce());
    let setup = Setup::new();
    let handle = IpcHandle { data: peer.receive() };
    // libumf does this before it opens.
    let fetched = fetch(peer.process.id(), number_in(handle));
    let memory = open(setup, with_number(handle, fetched.as_raw_fd()));
    // SAFETY: F_GETFD only asks.
    assert!(unsafe { libc::fcntl(fetched.as_raw_fd(), libc::F_GETFD) } >= 0);
    drop(fetched);
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    ok(zeMemCloseIpcHandle(setup.context, memory));
    // Whoever replaces the descriptor means one of this process.
    let other = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(refused(setup, with_number(handle, other.as_raw_fd())), INVALID_ARGUMENT);
    peer.end();
}

#[test]
fn the_bytes_as_they_are_open_whatever_file_has_their_number_here() {
    let mut peer = peer!(produce());
    let setup = Setup::new();
    let mut handle = IpcHandle { data: peer.receive() };
    // SAFETY: a number that no file of this process has: those of the device begin above it.
    assert_eq!(unsafe { libc::dup2(0, number_in(handle)) }, number_in(handle));
    ok(zeMemCloseIpcHandle(setup.context, open(setup, handle)));
    // Intel's driver uses the lower half of the first eight bytes.
    handle.data[4..8].fill(0xff);
    ok(zeMemCloseIpcHandle(setup.context, open(setup, handle)));
    peer.end();
}

#[test]
fn without_the_process_a_handle_opens_only_by_a_descriptor_of_the_own_process() {
    if role().as_deref() == Some("producer") {
        return produce();
    }
    alone!(&[("ZE_SOFT_HANDLES", "descriptor")]);
    let mut peer = Peer::start(this_test!(), "producer");
    let setup = Setup::new();
    let handle = IpcHandle { data: peer.receive() };
    assert_eq!((&handle.data[16..20], &handle.data[22..30]), (&[0; 4][..], &[0; 8][..]));
    assert_eq!(refused(setup, handle), INVALID_ARGUMENT);
    let fetched = fetch(peer.process.id(), number_in(handle));
    ok(zeMemCloseIpcHandle(setup.context, open(setup, with_number(handle, fetched.as_raw_fd()))));
    // In its own process it opens and is put.
    let memory = setup.device_memory(SIZE);
    let own = get(setup, memory);
    ok(zeMemCloseIpcHandle(setup.context, open(setup, own)));
    ok(zeMemPutIpcHandle(setup.context, own));
    assert_eq!(refused(setup, own), INVALID_ARGUMENT);
    peer.end();
}

#[test]
fn memory_that_its_producer_frees_stays_valid_where_it_is_open() {
    let mut peer = peer!(produce());
    let setup = Setup::new();
    let handle = IpcHandle { data: peer.receive() };
    let memory = open(setup, handle);
    peer.send(b"f");
    peer.receive::<1>();
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    // A later open is refused, although the file still exists.
    assert_eq!(refused(setup, handle), INVALID_ARGUMENT);
    ok(zeMemCloseIpcHandle(setup.context, memory));
    peer.end();
}

#[test]
fn a_freed_range_is_not_reused_while_another_process_has_it_open() {
    alone!();
    if role().as_deref() == Some("consumer") {
        let setup = Setup::new();
        let pipe = Pipe::open();
        let handle = IpcHandle { data: pipe.receive() };
        let memory = open(setup, handle);
        pipe.send(b"o");
        pipe.receive::<1>();
        assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
        ok(zeMemCloseIpcHandle(setup.context, memory));
        pipe.send(b"c");
        pipe.receive::<1>();
        return;
    }
    // Memory with a file of its own is not reused anyway.
    let setup = Setup::new();
    let mut peer = Peer::start(this_test!(), "consumer");
    share_files(setup);
    let memory = setup.device_memory(SIZE);
    bytes(memory, SIZE).fill(1);
    peer.send(&get(setup, memory).data);
    peer.receive::<1>();
    setup.free(memory);
    for _ in 0..100 {
        let other = setup.device_memory(SIZE);
        bytes(other, SIZE).fill(2);
        setup.free(other);
    }
    peer.send(b"!");
    peer.receive::<1>();
    peer.send(b"!");
    peer.end();
}

#[test]
fn after_the_last_put_a_handle_opens_nothing() {
    let setup = Setup::new();
    let memory = setup.device_memory(SIZE);
    let first = get(setup, memory);
    let second = get(setup, memory);
    assert_eq!(first.data, second.data);
    ok(zeMemPutIpcHandle(setup.context, first));
    let opened = open(setup, second);
    ok(zeMemPutIpcHandle(setup.context, second));
    assert_eq!(refused(setup, second), INVALID_ARGUMENT);
    // What is open stays open. An extra put, and a put of an unknown handle, succeed. A new get works.
    bytes(memory, SIZE).fill(8);
    assert!(bytes(opened, SIZE).iter().all(|byte| *byte == 8));
    ok(zeMemPutIpcHandle(setup.context, second));
    ok(zeMemPutIpcHandle(setup.context, IpcHandle { data: [0x41; 64] }));
    ok(zeMemCloseIpcHandle(setup.context, open(setup, get(setup, memory))));
    ok(zeMemCloseIpcHandle(setup.context, opened));
    setup.free(memory);
}

#[test]
fn every_open_returns_another_address_in_the_producer_too() {
    let setup = Setup::new();
    let memory = setup.device_memory(SIZE);
    let inside = (memory as usize + 100) as *const c_void;
    let handle = get(setup, inside);
    let one = open(setup, handle);
    let two = open(setup, handle);
    assert!(one != two && one != memory && two != memory);
    bytes(memory, SIZE)[0] = 3;
    assert_eq!((bytes(one, 1)[0], bytes(two, 1)[0]), (3, 3));
    ok(zeMemCloseIpcHandle(setup.context, one));
    assert_eq!(bytes(two, 1)[0], 3);
    ok(zeMemCloseIpcHandle(setup.context, two));
    setup.free(memory);
}

#[test]
fn only_what_was_opened_can_be_closed_and_it_cannot_be_freed() {
    let setup = Setup::new();
    let memory = setup.device_memory(SIZE);
    let opened = open(setup, get(setup, memory));
    let here = &raw const setup;
    for pointer in [memory.cast_const(), (opened as usize + 1) as *const c_void, here.cast()] {
        assert_eq!(zeMemCloseIpcHandle(setup.context, pointer), INVALID_ARGUMENT);
    }
    assert_eq!(zeMemFree(setup.context, opened), INVALID_ARGUMENT);
    let mut handle: IpcHandle = zeroed();
    assert_eq!(zeMemGetIpcHandle(setup.context, opened, &raw mut handle), INVALID_ARGUMENT);
    ok(zeMemCloseIpcHandle(setup.context, opened));
    assert_eq!(zeMemCloseIpcHandle(setup.context, opened), INVALID_ARGUMENT);
    setup.free(memory);
    assert_eq!(zeMemGetIpcHandle(setup.context, memory, &raw mut handle), INVALID_ARGUMENT);
    assert_eq!(zeMemGetIpcHandle(setup.context, here.cast(), &raw mut handle), INVALID_ARGUMENT);
}

#[test]
fn damaged_and_foreign_handles_are_refused_without_leaks() {
    alone!();
    let setup = Setup::new();
    let memory = setup.device_memory(SIZE);
    let handle = get(setup, memory);
    let before = (open_descriptors(), mappings());
    for byte in 8..64 {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = handle;
            damaged.data[byte] ^= change;
            assert_eq!(refused(setup, damaged), INVALID_ARGUMENT, "byte {byte}");
        }
    }
    for fill in [0, 0x41, 0xff] {
        assert_eq!(refused(setup, IpcHandle { data: [fill; 64] }), INVALID_ARGUMENT);
    }
    assert_eq!((open_descriptors(), mappings()), before);
    let result = zeMemOpenIpcHandle(setup.context, setup.device, handle, 4, &mut null_mut());
    assert_eq!(result, INVALID_ENUMERATION);
}

#[test]
fn the_handle_of_a_dead_producer_is_refused() {
    let mut peer = peer!(produce());
    let setup = Setup::new();
    let handle = IpcHandle { data: peer.receive() };
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    assert_eq!(refused(setup, handle), INVALID_ARGUMENT);
}

#[test]
fn a_producer_that_must_not_be_traced_is_an_error() {
    match role().as_deref() {
        Some("producer") => {
            // SAFETY: plain numbers. Only root may trace a process that is not dumpable.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
            produce();
        }
        Some(_) => {
            let setup = Setup::new();
            let pipe = Pipe::open();
            let nobody = 65_534;
            // SAFETY: plain numbers. Root loses the permission to trace other processes; any other user is unaffected.
            unsafe { libc::setuid(nobody) };
            let handle = IpcHandle { data: pipe.receive() };
            pipe.send(&refused(setup, handle).to_ne_bytes());
        }
        None => {
            let mut producer = Peer::start(this_test!(), "producer");
            let mut consumer = Peer::start(this_test!(), "consumer");
            let handle: [u8; 64] = producer.receive();
            consumer.send(&handle);
            assert_eq!(u32::from_ne_bytes(consumer.receive()), INVALID_ARGUMENT);
            producer.end();
            consumer.end();
        }
    }
}

#[test]
fn a_consumer_that_dies_does_no_harm() {
    alone!();
    if role().as_deref() == Some("consumer") {
        let setup = Setup::new();
        let pipe = Pipe::open();
        open(setup, IpcHandle { data: pipe.receive() });
        pipe.send(b"o");
        pipe.receive::<1>();
        return;
    }
    let setup = Setup::new();
    let mut peer = Peer::start(this_test!(), "consumer");
    share_files(setup);
    let memory = setup.device_memory(SIZE);
    peer.send(&get(setup, memory).data);
    peer.receive::<1>();
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    setup.free(memory);
    let other = setup.device_memory(SIZE);
    assert!(bytes(other, SIZE).iter().all(|byte| *byte == 0));
}

#[test]
fn many_cycles_leak_no_descriptor_and_no_mapping() {
    alone!(&[("ZE_SOFT_MEMORY", "64M")]);
    let setup = Setup::new();
    share_files(setup);
    let list = setup.immediate_list(2);
    let cycle = |round: usize| {
        // Every other allocation is large enough for a file of its own.
        let memory = setup.device_memory(if round.is_multiple_of(2) { 5000 } else { 2 << 20 });
        let handle = get(setup, memory);
        let opened = open(setup, handle);
        copy(list, memory, opened, 64);
        ok(zeCommandListHostSynchronize(list, FOREVER));
        if round.is_multiple_of(3) {
            ok(zeMemPutIpcHandle(setup.context, handle));
        }
        if round.is_multiple_of(5) {
            setup.free(memory);
            ok(zeMemCloseIpcHandle(setup.context, opened));
        } else {
            ok(zeMemCloseIpcHandle(setup.context, opened));
            setup.free(memory);
        }
    };
    (0..10).for_each(cycle);
    let before = (open_descriptors(), mappings());
    (0..20_000).for_each(cycle);
    assert_eq!((open_descriptors(), mappings()), before);
}
