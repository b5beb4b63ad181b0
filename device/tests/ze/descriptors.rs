//! Descriptors of allocations, and handles made of them.

use crate::api::*;
use crate::ipc::{get, open};
use crate::peer::{Peer, Pipe};

const SIZE: usize = 70_001;

/// Memory that is created to be exported.
fn exportable(setup: Setup) -> *mut c_void {
    let export = ExternalMemoryExportDesc { s_type: ExternalMemoryExportDesc::S_TYPE, flags: 2, ..zeroed() };
    let desc = DeviceMemAllocDesc { p_next: (&raw const export).cast_mut().cast(), ..zeroed() };
    make(|out| zeMemAllocDevice(setup.context, &raw const desc, SIZE, 0, setup.device, out))
}

/// What `zeMemGetAllocProperties` says of memory: its result, its type, and the descriptor that was requested.
pub(crate) fn query(setup: Setup, memory: *const c_void, flags: u32) -> (u32, u32, i32) {
    let mut export = ExternalMemoryExportFd { s_type: ExternalMemoryExportFd::S_TYPE, flags, fd: -1, ..zeroed() };
    let mut properties = MemoryAllocationProperties { p_next: (&raw mut export).cast(), ..zeroed() };
    let result = zeMemGetAllocProperties(setup.context, memory, &raw mut properties, null_mut());
    (result, properties.kind, export.fd)
}

/// The result of a query for the descriptor of memory.
pub(crate) fn exported(setup: Setup, memory: *const c_void, flags: u32) -> (u32, i32) {
    let (result, _, number) = query(setup, memory, flags);
    (result, number)
}

fn descriptor_of(setup: Setup, handle: IpcHandle) -> (u32, u64) {
    let mut number = u64::MAX;
    (zeMemGetFileDescriptorFromIpcHandleExp(setup.context, handle, &raw mut number), number)
}

fn handle_of(setup: Setup, number: u64) -> (u32, IpcHandle) {
    let mut handle: IpcHandle = zeroed();
    (zeMemGetIpcHandleFromFileDescriptorExp(setup.context, number, &raw mut handle), handle)
}

#[test]
fn the_descriptor_of_a_handle_is_the_exported_one_and_makes_a_handle_that_opens() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        let handle = IpcHandle { data: pipe.receive() };
        let memory = open(setup, handle);
        assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 5));
        // Only the producer can query its descriptor.
        assert_eq!(descriptor_of(setup, handle), (OUT_OF_HOST_MEMORY, u64::MAX));
        ok(zeMemCloseIpcHandle(setup.context, memory));
        return pipe.send(b"c");
    }
    let memory = exportable(setup);
    bytes(memory, SIZE).fill(5);
    let (result, number) = exported(setup, memory, 2);
    ok(result);
    // SAFETY: F_GETFD only asks.
    assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0);
    let (result, handle) = handle_of(setup, number as u64);
    ok(result);
    assert_eq!(descriptor_of(setup, handle), (SUCCESS, number as u64));
    assert_eq!(get(setup, memory).data, handle.data);
    let mut peer = Peer::start(this_test!(), "consumer");
    peer.send(&handle.data);
    peer.receive::<1>();
    peer.end();
    let here = open(setup, handle);
    assert_eq!(bytes(here, SIZE)[SIZE - 1], 5);
    ok(zeMemCloseIpcHandle(setup.context, here));
    // Two handles were made.
    ok(zeMemPutIpcHandle(setup.context, handle));
    ok(descriptor_of(setup, handle).0);
    ok(zeMemPutIpcHandle(setup.context, handle));
    assert_eq!(descriptor_of(setup, handle), (OUT_OF_HOST_MEMORY, u64::MAX));
    setup.free(memory);
    assert_eq!(handle_of(setup, number as u64).0, OUT_OF_HOST_MEMORY);
}

#[test]
fn any_memory_with_a_file_of_its_own_is_exported() {
    let setup = Setup::new();
    let plain = setup.device_memory(SIZE);
    let own = exportable(setup);
    for memory in [plain, own] {
        let handle = get(setup, memory);
        let (result, number) = descriptor_of(setup, handle);
        ok(result);
        assert_eq!(exported(setup, memory, 2), (SUCCESS, number as i32));
        assert_eq!(exported(setup, memory, 0), exported(setup, memory, 1));
        assert_eq!(handle_of(setup, number).1.data, handle.data);
    }
    assert_eq!(exported(setup, own, 1 << 2), (UNSUPPORTED_ENUMERATION, -1));
    assert_eq!(exported(setup, own, 1 << 8), (INVALID_ENUMERATION, -1));
    let opened = open(setup, get(setup, own));
    assert_eq!(exported(setup, opened, 2), (UNSUPPORTED_FEATURE, -1));
    ok(zeMemCloseIpcHandle(setup.context, opened));
    for memory in [plain, own] {
        setup.free(memory);
    }
}

#[test]
fn invalid_handles_and_descriptors_are_refused() {
    let setup = Setup::new();
    let memory = exportable(setup);
    let handle = get(setup, memory);
    let (_, number) = exported(setup, memory, 1);
    for data in [[0; 64], [0xff; 64]] {
        assert_eq!(descriptor_of(setup, IpcHandle { data }), (OUT_OF_HOST_MEMORY, u64::MAX));
    }
    for number in [0, u64::MAX, 1 << 32 | number as u64, 1_000_000] {
        assert_eq!(handle_of(setup, number).0, OUT_OF_HOST_MEMORY);
    }
    assert_eq!(zeMemGetFileDescriptorFromIpcHandleExp(null_mut(), handle, &mut 0), INVALID_NULL_HANDLE);
    assert_eq!(zeMemGetFileDescriptorFromIpcHandleExp(setup.context, handle, null_mut()), INVALID_NULL_POINTER);
    assert_eq!(zeMemGetIpcHandleFromFileDescriptorExp(setup.context, number as u64, null_mut()), INVALID_NULL_POINTER);
}

#[test]
fn freed_exportable_memory_closes_its_descriptor() {
    alone!();
    let setup = Setup::new();
    let cycle = |_| {
        let memory = exportable(setup);
        let (_, handle) = handle_of(setup, exported(setup, memory, 1).1 as u64);
        let opened = open(setup, handle);
        setup.free(memory);
        ok(zeMemCloseIpcHandle(setup.context, opened));
    };
    (0..10).for_each(cycle);
    let before = open_descriptors();
    (0..1000).for_each(cycle);
    assert_eq!(open_descriptors(), before);
}
