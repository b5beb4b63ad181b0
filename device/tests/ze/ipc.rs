//! Memory shared between processes.
//!
//! The other process is this binary in another role; the two talk through the pipes of its standard streams.

use std::ffi::c_void;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use crate::api::layout::memory::*;
use crate::api::*;
use crate::peer::{Peer, Pipe};

const SIZE: usize = 70_001;

fn get(stage: Stage, pointer: *const c_void) -> IpcMemHandle {
    let mut handle: IpcMemHandle = zeroed();
    ok(zeMemGetIpcHandle(stage.context, pointer, &raw mut handle));
    handle
}

fn open(stage: Stage, handle: IpcMemHandle) -> *mut c_void {
    made(|out| zeMemOpenIpcHandle(stage.context, stage.device, handle, 0, out))
}

/// The code of an open that must fail, and leave its result alone.
#[track_caller]
fn refused(stage: Stage, handle: IpcMemHandle) -> u32 {
    let mut out = null_mut();
    let result = zeMemOpenIpcHandle(stage.context, stage.device, handle, 0, &raw mut out);
    assert!(out.is_null());
    result
}

/// Plays a producer that exports one allocation of `SIZE` bytes filled with 1, and does as it is told: `f` frees,
/// `p` puts, anything else says what the first byte is.
fn produce() {
    let (stage, pipe) = (Stage::new(), Pipe::open());
    let memory = stage.device_memory(SIZE);
    bytes(memory, SIZE).fill(1);
    let handle = get(stage, memory);
    pipe.send(&handle.data);
    let mut order = [0];
    while pipe.from.lock().read(&mut order).unwrap() == 1 {
        match order {
            [b'f'] => stage.free(memory),
            [b'p'] => ok(zeMemPutIpcHandle(stage.context, handle)),
            _ => {}
        }
        pipe.send(&[if order == [b'f'] { 0 } else { bytes(memory, 1)[0] }]);
    }
}

#[test]
fn two_processes_see_the_same_memory() {
    const NAME: &str = "ipc::two_processes_see_the_same_memory";
    if role().is_some() {
        return produce();
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "producer");
    let handle = IpcMemHandle { data: peer.receive() };
    let memory = open(stage, handle);
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    bytes(memory, SIZE).fill(2);
    peer.send(b"?");
    assert_eq!(peer.receive(), [2]);
    let (mut properties, mut device): (MemoryAllocationProperties, Handle) = (zeroed(), null_mut());
    ok(zeMemGetAllocProperties(stage.context, memory, &raw mut properties, &raw mut device));
    assert_eq!((properties.kind, device), (2, stage.device));
    let (mut base, mut size) = (null_mut(), 0);
    ok(zeMemGetAddressRange(stage.context, (memory as usize + 9) as *const c_void, &raw mut base, &raw mut size));
    assert_eq!((base, size), (memory, SIZE));
    let list = stage.immediate_list(1);
    let own = stage.device_memory(SIZE);
    copy(list, own, memory, SIZE);
    assert!(bytes(own, SIZE).iter().all(|byte| *byte == 2));
    ok(zeMemCloseIpcHandle(stage.context, memory));
    peer.end();
}

#[test]
fn a_descriptor_that_was_fetched_already_is_used_and_left_open() {
    const NAME: &str = "ipc::a_descriptor_that_was_fetched_already_is_used_and_left_open";
    if role().is_some() {
        return produce();
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "producer");
    let mut handle = IpcMemHandle { data: peer.receive() };
    let exported = i32::from_ne_bytes(handle.data[..4].try_into().unwrap());
    // What libumf does before it opens.
    // SAFETY: pidfd_open and pidfd_getfd take plain numbers, and what they make is ours.
    let fetched = unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(peer.process.id()), 0) as i32;
        let process = OwnedFd::from_raw_fd(process);
        let number = libc::c_long::from(exported);
        OwnedFd::from_raw_fd(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) as i32)
    };
    handle.data[..4].copy_from_slice(&fetched.as_raw_fd().to_ne_bytes());
    let memory = open(stage, handle);
    // SAFETY: F_GETFD only asks.
    assert!(unsafe { libc::fcntl(fetched.as_raw_fd(), libc::F_GETFD) } >= 0);
    drop(fetched);
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    ok(zeMemCloseIpcHandle(stage.context, memory));
    // A number that is some other file here is not taken for it.
    let other = std::fs::File::open("/proc/self/exe").unwrap();
    handle.data[..4].copy_from_slice(&other.as_raw_fd().to_ne_bytes());
    ok(zeMemCloseIpcHandle(stage.context, open(stage, handle)));
    peer.end();
}

#[test]
fn memory_that_its_producer_frees_stays_with_who_has_it_open() {
    const NAME: &str = "ipc::memory_that_its_producer_frees_stays_with_who_has_it_open";
    if role().is_some() {
        return produce();
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "producer");
    let handle = IpcMemHandle { data: peer.receive() };
    let memory = open(stage, handle);
    peer.send(b"f");
    peer.receive::<1>();
    assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
    // Who comes later is refused, also while the file is still there.
    assert_eq!(refused(stage, handle), INVALID_ARGUMENT);
    ok(zeMemCloseIpcHandle(stage.context, memory));
    peer.end();
}

#[test]
fn a_freed_range_is_not_used_again_while_it_is_open_elsewhere() {
    const NAME: &str = "ipc::a_freed_range_is_not_used_again_while_it_is_open_elsewhere";
    if role().is_some() {
        let (stage, pipe) = (Stage::new(), Pipe::open());
        let handle = IpcMemHandle { data: pipe.receive() };
        let memory = open(stage, handle);
        pipe.send(b"o");
        pipe.receive::<1>();
        assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 1));
        ok(zeMemCloseIpcHandle(stage.context, memory));
        pipe.send(b"c");
        pipe.receive::<1>();
        return;
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "consumer");
    let memory = stage.device_memory(SIZE);
    bytes(memory, SIZE).fill(1);
    peer.send(&get(stage, memory).data);
    peer.receive::<1>();
    stage.free(memory);
    for _ in 0..100 {
        let other = stage.device_memory(SIZE);
        bytes(other, SIZE).fill(2);
        stage.free(other);
    }
    peer.send(b"!");
    peer.receive::<1>();
    peer.send(b"!");
    peer.end();
}

#[test]
fn after_the_last_put_a_handle_opens_nothing() {
    let stage = Stage::new();
    let memory = stage.device_memory(SIZE);
    let (first, second) = (get(stage, memory), get(stage, memory));
    assert_eq!(first.data, second.data);
    ok(zeMemPutIpcHandle(stage.context, first));
    let opened = open(stage, second);
    ok(zeMemPutIpcHandle(stage.context, second));
    assert_eq!(refused(stage, second), INVALID_ARGUMENT);
    // What is open stays open; one put too many, or of something unknown, is no error; and a new get works.
    bytes(memory, SIZE).fill(8);
    assert!(bytes(opened, SIZE).iter().all(|byte| *byte == 8));
    ok(zeMemPutIpcHandle(stage.context, second));
    ok(zeMemPutIpcHandle(stage.context, IpcMemHandle { data: [0x41; 64] }));
    ok(zeMemCloseIpcHandle(stage.context, open(stage, get(stage, memory))));
    ok(zeMemCloseIpcHandle(stage.context, opened));
    stage.free(memory);
}

#[test]
fn every_open_gives_another_address_also_in_the_producer() {
    let stage = Stage::new();
    let memory = stage.device_memory(SIZE);
    let inside = (memory as usize + 100) as *const c_void;
    let handle = get(stage, inside);
    let (one, two) = (open(stage, handle), open(stage, handle));
    assert!(one != two && one != memory && two != memory);
    bytes(memory, SIZE)[0] = 3;
    assert_eq!((bytes(one, 1)[0], bytes(two, 1)[0]), (3, 3));
    ok(zeMemCloseIpcHandle(stage.context, one));
    assert_eq!(bytes(two, 1)[0], 3);
    ok(zeMemCloseIpcHandle(stage.context, two));
    stage.free(memory);
}

#[test]
fn only_what_was_opened_can_be_closed_and_it_cannot_be_freed() {
    let stage = Stage::new();
    let memory = stage.device_memory(SIZE);
    let opened = open(stage, get(stage, memory));
    let here = &raw const stage;
    for pointer in [memory.cast_const(), (opened as usize + 1) as *const c_void, here.cast()] {
        assert_eq!(zeMemCloseIpcHandle(stage.context, pointer), INVALID_ARGUMENT);
    }
    assert_eq!(zeMemFree(stage.context, opened), INVALID_ARGUMENT);
    let mut handle: IpcMemHandle = zeroed();
    assert_eq!(zeMemGetIpcHandle(stage.context, opened, &raw mut handle), INVALID_ARGUMENT);
    ok(zeMemCloseIpcHandle(stage.context, opened));
    assert_eq!(zeMemCloseIpcHandle(stage.context, opened), INVALID_ARGUMENT);
    stage.free(memory);
    assert_eq!(zeMemGetIpcHandle(stage.context, memory, &raw mut handle), INVALID_ARGUMENT);
    assert_eq!(zeMemGetIpcHandle(stage.context, here.cast(), &raw mut handle), INVALID_ARGUMENT);
}

#[test]
fn damaged_and_foreign_handles_are_refused_and_nothing_is_left_behind() {
    const NAME: &str = "ipc::damaged_and_foreign_handles_are_refused_and_nothing_is_left_behind";
    if role().is_none() {
        run(actor(NAME, "device", &[]));
        return;
    }
    let stage = Stage::new();
    let memory = stage.device_memory(SIZE);
    let handle = get(stage, memory);
    let (descriptors, maps) = (open_descriptors(), std::fs::read_to_string("/proc/self/maps").unwrap().lines().count());
    for byte in 4..64 {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = handle;
            damaged.data[byte] ^= change;
            assert_eq!(refused(stage, damaged), INVALID_ARGUMENT, "byte {byte}");
        }
    }
    for fill in [0, 0x41, 0xff] {
        assert_eq!(refused(stage, IpcMemHandle { data: [fill; 64] }), INVALID_ARGUMENT);
    }
    assert_eq!(open_descriptors(), descriptors);
    assert_eq!(std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(), maps);
    let mut out = null_mut();
    let result = zeMemOpenIpcHandle(stage.context, stage.device, handle, 4, &raw mut out);
    assert_eq!(result, INVALID_ENUMERATION);
}

#[test]
fn the_handle_of_a_dead_producer_is_refused() {
    const NAME: &str = "ipc::the_handle_of_a_dead_producer_is_refused";
    if role().is_some() {
        return produce();
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "producer");
    let handle = IpcMemHandle { data: peer.receive() };
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    assert_eq!(refused(stage, handle), INVALID_ARGUMENT);
}

#[test]
fn a_producer_that_does_not_let_its_descriptors_be_fetched_is_a_clean_error() {
    const NAME: &str = "ipc::a_producer_that_does_not_let_its_descriptors_be_fetched_is_a_clean_error";
    match role().as_deref() {
        Some("producer") => {
            // SAFETY: plain numbers. A process that is not dumpable may be traced by root only.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
            produce();
        }
        Some(_) => {
            let (stage, pipe) = (Stage::new(), Pipe::open());
            let nobody = 65_534;
            // SAFETY: plain numbers. Root gives up what would let it trace everybody; the runner's user stays as it is.
            unsafe { libc::setuid(nobody) };
            let handle = IpcMemHandle { data: pipe.receive() };
            pipe.send(&refused(stage, handle).to_ne_bytes());
        }
        None => {
            let mut producer = Peer::start(NAME, "producer");
            let mut consumer = Peer::start(NAME, "consumer");
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
    const NAME: &str = "ipc::a_consumer_that_dies_does_no_harm";
    if role().is_some() {
        let (stage, pipe) = (Stage::new(), Pipe::open());
        open(stage, IpcMemHandle { data: pipe.receive() });
        pipe.send(b"o");
        pipe.receive::<1>();
        return;
    }
    let stage = Stage::new();
    let mut peer = Peer::start(NAME, "consumer");
    let memory = stage.device_memory(SIZE);
    peer.send(&get(stage, memory).data);
    peer.receive::<1>();
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    stage.free(memory);
    let other = stage.device_memory(SIZE);
    assert!(bytes(other, SIZE).iter().all(|byte| *byte == 0));
    stage.free(other);
}

#[test]
fn no_descriptor_and_no_mapping_is_lost_over_many_cycles() {
    const NAME: &str = "ipc::no_descriptor_and_no_mapping_is_lost_over_many_cycles";
    if role().is_none() {
        run(actor(NAME, "device", &[("ZE_SOFT_MEMORY", "64M")]));
        return;
    }
    let stage = Stage::new();
    let list = stage.immediate_list(2);
    let cycle = |round: usize| {
        // Every other one is large enough to have a file of its own.
        let memory = stage.device_memory(if round.is_multiple_of(2) { 5000 } else { 2 << 20 });
        let handle = get(stage, memory);
        let opened = open(stage, handle);
        copy(list, memory, opened, 64);
        ok(zeCommandListHostSynchronize(list, FOREVER));
        if round.is_multiple_of(3) {
            ok(zeMemPutIpcHandle(stage.context, handle));
        }
        if round.is_multiple_of(5) {
            stage.free(memory);
            ok(zeMemCloseIpcHandle(stage.context, opened));
        } else {
            ok(zeMemCloseIpcHandle(stage.context, opened));
            stage.free(memory);
        }
    };
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:ze_soft").count();
    (0..10).for_each(cycle);
    let before = (open_descriptors(), maps());
    (0..20_000).for_each(cycle);
    assert_eq!((open_descriptors(), maps()), before);
}
