//! Physical memory: sizes, properties, and descriptors that other processes and other memory are made from.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::api::*;
use crate::descriptors::exported;
use crate::ipc::{get, number_in, open};
use crate::passing::fetch;
use crate::peer::{Peer, Pipe};

const PAGE: usize = 4096;
const SIZE: usize = 5 * PAGE;
const READ_WRITE: u32 = 1;

fn properties(setup: Setup, memory: Handle) -> PhysicalMemProperties {
    value(|out| zePhysicalMemGetProperties(setup.context, memory, out))
}

/// Requests a descriptor of these types.
fn try_export(setup: Setup, memory: Handle, flags: u32) -> (u32, i32) {
    let mut export = ExternalMemoryExportFd { s_type: ExternalMemoryExportFd::S_TYPE, flags, fd: -1, ..zeroed() };
    let mut properties = PhysicalMemProperties { s_type: 0x2_0040, p_next: (&raw mut export).cast(), ..zeroed() };
    let result = zePhysicalMemGetProperties(setup.context, memory, &raw mut properties);
    (result, export.fd)
}

pub(crate) fn export(setup: Setup, memory: Handle) -> OwnedFd {
    let (result, number) = try_export(setup, memory, 1);
    ok(result);
    // SAFETY: an exported descriptor is its caller's.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn try_import(setup: Setup, fd: i32, size: usize, flags: u32) -> (u32, Handle) {
    let import = ExternalMemoryImportFd { s_type: ExternalMemoryImportFd::S_TYPE, flags, fd, ..zeroed() };
    let desc = PhysicalMemDesc { p_next: (&raw const import).cast_mut().cast(), size, ..zeroed() };
    let mut memory = null_mut();
    let result = zePhysicalMemCreate(setup.context, setup.device, &raw const desc, &raw mut memory);
    (result, memory)
}

fn import(setup: Setup, descriptor: &OwnedFd) -> Handle {
    let (result, memory) = try_import(setup, descriptor.as_raw_fd(), SIZE, 1);
    ok(result);
    memory
}

fn mapped(setup: Setup, memory: Handle, size: usize) -> *mut c_void {
    let base = setup.reserve(size);
    ok(zeVirtualMemMap(setup.context, base, size, memory, 0, READ_WRITE));
    base
}

#[test]
fn memory_says_what_it_is_and_is_counted() {
    alone!(&[("ZE_SOFT_MEMORY", "64M")]);
    let setup = Setup::new();
    let one = setup.physical(SIZE);
    let two = setup.exportable(SIZE);
    let first = properties(setup, one);
    let second = properties(setup, two);
    assert_eq!((first.size, second.size), (SIZE, SIZE));
    assert!(first.id != 0 && first.id != second.id);
    let create = |size, flags, device| {
        let desc = PhysicalMemDesc { size, flags, ..zeroed() };
        let mut out = null_mut();
        (zePhysicalMemCreate(setup.context, device, &raw const desc, &raw mut out), out)
    };
    for (size, flags, expected) in [
        (0, 0, UNSUPPORTED_SIZE),
        (100, 0, UNSUPPORTED_SIZE),
        (PAGE, 4, INVALID_ENUMERATION),
        (64 << 20, 0, OUT_OF_DEVICE_MEMORY),
        (1 << 62, 2, OUT_OF_HOST_MEMORY),
    ] {
        assert_eq!(create(size, flags, setup.device), (expected, null_mut()));
    }
    assert_eq!(create(PAGE, 0, null_mut()).0, INVALID_NULL_HANDLE);
    // Destroyed memory can be allocated again; host memory does not count for the device.
    let (result, most) = create((64 << 20) - 2 * SIZE, 1, setup.device);
    ok(result);
    assert_eq!(create(PAGE, 1, setup.device).0, OUT_OF_DEVICE_MEMORY);
    let (result, host) = create(PAGE, 2, null_mut());
    ok(result);
    let base = mapped(setup, host, PAGE);
    let (mut described, mut device): (MemoryAllocationProperties, Handle) = (zeroed(), setup.device);
    ok(zeMemGetAllocProperties(setup.context, base, &raw mut described, &raw mut device));
    assert_eq!((described.kind, device), (1, null_mut()));
    ok(zeVirtualMemFree(setup.context, base, PAGE));
    for memory in [one, two, most, host] {
        ok(zePhysicalMemDestroy(setup.context, memory));
        assert_eq!(zePhysicalMemDestroy(setup.context, memory), INVALID_ARGUMENT);
    }
    let (result, all) = create(64 << 20, 0, setup.device);
    ok(result);
    ok(zePhysicalMemDestroy(setup.context, all));
}

#[test]
fn an_import_is_the_same_memory_and_on_its_own() {
    let setup = Setup::new();
    let memory = setup.exportable(SIZE);
    let one = export(setup, memory);
    let two = export(setup, memory);
    assert_ne!(one.as_raw_fd(), two.as_raw_fd());
    let first = import(setup, &one);
    let second = import(setup, &two);
    assert_eq!(properties(setup, first).size, SIZE);
    drop((one, two));
    let [a, b, c] = [memory, first, second].map(|memory| mapped(setup, memory, SIZE));
    bytes(a, SIZE).fill(3);
    assert!(bytes(b, SIZE).iter().all(|byte| *byte == 3));
    ok(zeVirtualMemFree(setup.context, a, SIZE));
    ok(zePhysicalMemDestroy(setup.context, memory));
    // Imported memory can be exported.
    let third = import(setup, &export(setup, first));
    let d = mapped(setup, third, SIZE);
    bytes(d, SIZE)[0] = 4;
    assert_eq!((bytes(b, 1)[0], bytes(c, 1)[0]), (4, 4));
    for base in [b, c, d] {
        ok(zeVirtualMemFree(setup.context, base, SIZE));
    }
    for memory in [first, second, third] {
        ok(zePhysicalMemDestroy(setup.context, memory));
    }
}

#[test]
fn only_what_was_made_for_it_is_exported_and_only_as_a_descriptor() {
    let setup = Setup::new();
    let plain = setup.physical(SIZE);
    let memory = setup.exportable(SIZE);
    assert_eq!(try_export(setup, plain, 1), (INVALID_ARGUMENT, -1));
    assert_eq!(try_export(setup, memory, 4), (UNSUPPORTED_ENUMERATION, -1));
    assert_eq!(try_export(setup, memory, 1 << 9), (INVALID_ENUMERATION, -1));
    for flags in [0, 1, 2, 3] {
        let (result, number) = try_export(setup, memory, flags);
        ok(result);
        // SAFETY: an exported descriptor is its caller's.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    for (flags, expected) in [(4, UNSUPPORTED_ENUMERATION), (1 << 9, INVALID_ENUMERATION)] {
        let export = ExternalMemoryExportDesc { s_type: ExternalMemoryExportDesc::S_TYPE, flags, ..zeroed() };
        let desc = PhysicalMemDesc { p_next: (&raw const export).cast_mut().cast(), size: SIZE, ..zeroed() };
        assert_eq!(zePhysicalMemCreate(setup.context, setup.device, &raw const desc, &mut null_mut()), expected);
    }
}

/// As a dma-buf of an allocation can be.
#[test]
fn an_allocation_is_imported_as_physical_memory() {
    let setup = Setup::new();
    let allocation = setup.device_memory(SIZE);
    bytes(allocation, SIZE).fill(7);
    let number = number_in(get(setup, allocation));
    assert_eq!(try_import(setup, number, SIZE + PAGE, 1), (UNSUPPORTED_SIZE, null_mut()));
    let (result, imported) = try_import(setup, number, SIZE, 1);
    ok(result);
    let base = setup.reserve(SIZE);
    ok(zeVirtualMemMap(setup.context, base, SIZE, imported, 0, 1));
    assert!(bytes(base, SIZE).iter().all(|byte| *byte == 7));
    bytes(base, SIZE).fill(8);
    assert!(bytes(allocation, SIZE).iter().all(|byte| *byte == 8));
    ok(zeVirtualMemUnmap(setup.context, base, SIZE));
    ok(zePhysicalMemDestroy(setup.context, imported));
    ok(zeVirtualMemFree(setup.context, base, SIZE));
    setup.free(allocation);
}

#[test]
fn a_foreign_descriptor_is_refused_and_left_alone() {
    alone!();
    let setup = Setup::new();
    let ordinary = File::open(std::env::current_exe().unwrap()).unwrap();
    // SAFETY: plain calls that make descriptors, which the files own.
    let (pipe, memory) = unsafe {
        let mut ends = [0; 2];
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let memory = File::from_raw_fd(libc::memfd_create(c"other".as_ptr(), libc::MFD_ALLOW_SEALING));
        memory.set_len((SIZE + PAGE) as u64).unwrap();
        (ends.map(|end| File::from_raw_fd(end)), memory)
    };
    let exportable = setup.exportable(SIZE);
    let good = export(setup, exportable);
    let before = open_descriptors();
    for fd in [-1, i32::MIN, 1 << 20, ordinary.as_raw_fd(), pipe[0].as_raw_fd(), memory.as_raw_fd()] {
        assert_eq!(try_import(setup, fd, SIZE, 1), (OUT_OF_DEVICE_MEMORY, null_mut()), "{fd}");
    }
    for size in [PAGE, SIZE - PAGE, SIZE + PAGE, 1 << 40] {
        assert_eq!(try_import(setup, good.as_raw_fd(), size, 1), (UNSUPPORTED_SIZE, null_mut()), "{size}");
    }
    assert_eq!(try_import(setup, good.as_raw_fd(), SIZE, 4), (UNSUPPORTED_ENUMERATION, null_mut()));
    assert_eq!(open_descriptors(), before);
    // Nobody can shrink the file while others have it mapped.
    let file = File::from(good);
    assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err());
}

#[test]
fn two_processes_map_the_same_memories_side_by_side() {
    const COUNT: usize = 3;
    let setup = Setup::new();
    let map = |memories: [Handle; COUNT]| {
        let base = setup.reserve(COUNT * SIZE);
        for (index, memory) in memories.into_iter().enumerate() {
            let at = (base as usize + index * SIZE) as *mut c_void;
            ok(zeVirtualMemMap(setup.context, at, SIZE, memory, 0, READ_WRITE));
        }
        base
    };
    if role().is_some() {
        let pipe = Pipe::open();
        let memories = [(); COUNT].map(|()| setup.exportable(SIZE));
        let base = map(memories);
        for (index, byte) in bytes(base, COUNT * SIZE).iter_mut().enumerate() {
            *byte = (index % 253) as u8;
        }
        let descriptors = memories.map(|memory| export(setup, memory));
        for descriptor in &descriptors {
            pipe.send(&descriptor.as_raw_fd().to_ne_bytes());
        }
        pipe.receive::<1>();
        drop(descriptors);
        pipe.send(b"d");
        pipe.receive::<1>();
        assert!(bytes(base, COUNT * SIZE).iter().enumerate().all(|(index, byte)| *byte == (index % 241) as u8));
        return;
    }
    let mut peer = Peer::start(this_test!(), "producer");
    let memories = [(); COUNT].map(|()| {
        let descriptor = fetch(peer.process.id(), i32::from_ne_bytes(peer.receive()));
        import(setup, &descriptor)
    });
    peer.send(b"c");
    peer.receive::<1>();
    let base = map(memories);
    assert!(bytes(base, COUNT * SIZE).iter().enumerate().all(|(index, byte)| *byte == (index % 253) as u8));
    for (index, byte) in bytes(base, COUNT * SIZE).iter_mut().enumerate() {
        *byte = (index % 241) as u8;
    }
    peer.send(b"w");
    peer.end();
    // The producer has exited; the memory is still there.
    assert_eq!(bytes(base, COUNT * SIZE)[240], 240);
    ok(zeVirtualMemFree(setup.context, base, COUNT * SIZE));
    for memory in memories {
        ok(zePhysicalMemDestroy(setup.context, memory));
    }
}

#[test]
fn physical_memory_has_ipc_handles_like_other_memory() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        for _ in 0..2 {
            let memory = open(setup, IpcHandle { data: pipe.receive() });
            assert!(bytes(memory, SIZE).iter().all(|byte| *byte == 6));
            bytes(memory, SIZE).fill(7);
            ok(zeMemCloseIpcHandle(setup.context, memory));
            pipe.send(b"c");
        }
        return;
    }
    let mut peer = Peer::start(this_test!(), "consumer");
    let mut handle: IpcHandle = zeroed();
    for memory in [setup.physical(SIZE), setup.exportable(SIZE)] {
        let base = mapped(setup, memory, SIZE);
        bytes(base, SIZE).fill(6);
        // By its own handle, or by an address where it is mapped.
        ok(zeMemGetIpcHandleWithProperties(setup.context, memory, null(), &raw mut handle));
        let by_handle = handle.data;
        ok(zeMemGetIpcHandle(setup.context, memory, &raw mut handle));
        assert_eq!(handle.data, by_handle);
        ok(zeMemGetIpcHandle(setup.context, (base as usize + PAGE) as *const c_void, &raw mut handle));
        assert_eq!(handle.data, by_handle);
        ok(zeMemGetIpcHandleWithProperties(setup.context, base, null(), &raw mut handle));
        peer.send(&handle.data);
        peer.receive::<1>();
        assert!(bytes(base, SIZE).iter().all(|byte| *byte == 7));
        // Once it is destroyed no process can open it, although it is still mapped here.
        ok(zePhysicalMemDestroy(setup.context, memory));
        assert_eq!(zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, &mut null_mut()), INVALID_ARGUMENT);
        assert_eq!(bytes(base, 1)[0], 7);
        ok(zeVirtualMemFree(setup.context, base, SIZE));
    }
    peer.end();
    // Not for imported memory, nor for other pointers.
    let memory = setup.exportable(SIZE);
    let imported = import(setup, &export(setup, memory));
    let here = &raw const setup;
    for pointer in [imported.cast_const(), setup.context, here.cast()] {
        let result = zeMemGetIpcHandleWithProperties(setup.context, pointer, null(), &raw mut handle);
        assert_eq!(result, INVALID_ARGUMENT);
        assert_eq!(zeMemGetIpcHandle(setup.context, pointer, &raw mut handle), INVALID_ARGUMENT);
    }
    ok(zePhysicalMemDestroy(setup.context, memory));
    ok(zePhysicalMemDestroy(setup.context, imported));
}

/// Wherever it is mapped, the descriptor is that of all the memory. The device owns it as long as the memory lives.
#[test]
fn mapped_memory_has_a_descriptor_by_its_address() {
    let setup = Setup::new();
    let by_address = |address| exported(setup, address, 2);
    for memory in [setup.physical(SIZE), setup.exportable(SIZE)] {
        let base = setup.reserve(2 * SIZE);
        ok(zeVirtualMemMap(setup.context, base, 2 * PAGE, memory, 3 * PAGE, READ_WRITE));
        bytes(base, 1)[0] = 42;
        let at = |offset| (base as usize + offset) as *const c_void;
        let (result, number) = by_address(at(PAGE + 5));
        ok(result);
        assert_eq!(by_address(base), (SUCCESS, number));
        assert_eq!(by_address(at(2 * PAGE)).0, UNSUPPORTED_FEATURE);
        let mut handle: IpcHandle =
            value(|out| zeMemGetIpcHandleFromFileDescriptorExp(setup.context, number as u64, out));
        let opened = open(setup, handle);
        assert_eq!(bytes(opened, SIZE)[3 * PAGE], 42);
        ok(zeMemCloseIpcHandle(setup.context, opened));
        ok(zeMemPutIpcHandle(setup.context, handle));
        let (result, again) = try_import(setup, number, SIZE, 1);
        ok(result);
        let other = mapped(setup, again, SIZE);
        assert_eq!(bytes(other, SIZE)[3 * PAGE], 42);
        // What was imported is not exported again, also not by its address.
        assert_eq!(by_address(other).0, UNSUPPORTED_FEATURE);
        ok(zeVirtualMemFree(setup.context, other, SIZE));
        ok(zePhysicalMemDestroy(setup.context, again));
        ok(zeVirtualMemFree(setup.context, base, 2 * SIZE));
        ok(zePhysicalMemDestroy(setup.context, memory));
        let gone = zeMemGetIpcHandleFromFileDescriptorExp(setup.context, number as u64, &raw mut handle);
        assert_eq!(gone, OUT_OF_HOST_MEMORY);
    }
}

#[test]
fn one_descriptor_for_all_queries_if_it_is_wished_for() {
    alone!(&[("ZE_SOFT_EXPORT_FD", "one")]);
    let setup = Setup::new();
    let memory = setup.exportable(SIZE);
    let (_, number) = try_export(setup, memory, 1);
    assert_eq!(try_export(setup, memory, 1), (SUCCESS, number));
    // Destroying the memory does not close the descriptor, which can still be imported.
    ok(zePhysicalMemDestroy(setup.context, memory));
    let (result, imported) = try_import(setup, number, SIZE, 1);
    ok(result);
    ok(zePhysicalMemDestroy(setup.context, imported));
    // Once the caller has closed it, the number is no descriptor.
    let memory = setup.exportable(SIZE);
    drop(export(setup, memory));
    let (_, number) = try_export(setup, memory, 1);
    assert_eq!(try_import(setup, number, SIZE, 1), (OUT_OF_DEVICE_MEMORY, null_mut()));
}

#[test]
fn an_imported_number_is_closed_with_the_memory_if_it_is_wished_for() {
    alone!(&[("ZE_SOFT_IMPORT_FD", "keep")]);
    let setup = Setup::new();
    let memory = setup.exportable(SIZE);
    let (_, number) = try_export(setup, memory, 1);
    let before = open_descriptors();
    let (result, imported) = try_import(setup, number, SIZE, 1);
    ok(result);
    // A refused import does not take the descriptor over.
    assert_eq!(try_import(setup, number, 2 * SIZE, 1).0, UNSUPPORTED_SIZE);
    ok(zePhysicalMemDestroy(setup.context, imported));
    assert_eq!(open_descriptors(), before - 1);
    assert_eq!(try_import(setup, number, SIZE, 1), (OUT_OF_DEVICE_MEMORY, null_mut()));
}

#[test]
fn no_descriptor_and_no_mapping_is_lost_over_many_cycles() {
    alone!(&[("ZE_SOFT_MEMORY", "64M")]);
    let setup = Setup::new();
    let memory = setup.exportable(SIZE);
    let base = setup.reserve(SIZE);
    let cycle = |round: usize| {
        let descriptor = export(setup, memory);
        let imported = import(setup, &descriptor);
        ok(zeVirtualMemMap(setup.context, base, SIZE, imported, 0, READ_WRITE));
        if round.is_multiple_of(2) {
            drop(descriptor);
            ok(zeVirtualMemUnmap(setup.context, base, SIZE));
            ok(zePhysicalMemDestroy(setup.context, imported));
        } else {
            ok(zePhysicalMemDestroy(setup.context, imported));
            ok(zeVirtualMemUnmap(setup.context, base, SIZE));
        }
    };
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    (0..10).for_each(cycle);
    let before = (open_descriptors(), maps());
    (0..100_000).for_each(cycle);
    for _ in 0..2000 {
        let other = setup.exportable(SIZE);
        drop(export(setup, other));
        ok(zePhysicalMemDestroy(setup.context, other));
    }
    assert_eq!((open_descriptors(), maps()), before);
}
