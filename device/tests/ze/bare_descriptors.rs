//! Descriptors of memory in other hands: they are mapped without the device, and they are all of a handle that is left.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{fs::File, os::unix::fs::FileExt, path::Path};

use crate::api::*;
use crate::descriptors::query;
use crate::ipc::{get, number_in, open, refused, with_number};
use crate::memory::{allocate_with, describe};
use crate::passing;
use crate::peer::{Peer, Pipe};

const PAGE: usize = 4096;
const SIZES: [usize; 5] = [1, 4096, 4097, 70_001, 80 << 20];

/// A handle of which only a descriptor is left.
pub(crate) fn bare(number: i32) -> IpcHandle {
    with_number(zeroed(), number)
}

/// Memory of each kind and size, each filled with a number of its own.
fn memories(setup: Setup) -> Vec<(*mut c_void, usize)> {
    let of_kind = |size, kind| (make(|out| allocate_with(setup, kind, null_mut(), size, 0, out)), size);
    let mut made: Vec<_> = SIZES.iter().flat_map(|size| [2, 1, 3].map(|kind| of_kind(*size, kind))).collect();
    let physical = setup.physical(3 * PAGE);
    let base = setup.reserve(3 * PAGE);
    ok(zeVirtualMemMap(setup.context, base, 3 * PAGE, physical, 0, 1));
    made.push((base, 3 * PAGE));
    for (index, (memory, size)) in made.iter().enumerate() {
        bytes(*memory, *size).fill(index as u8 + 1);
    }
    made
}

/// The bytes from the beginning of a file, by mmap(2) as any program calls it.
fn with_mapped_file(file: &OwnedFd, size: usize, look: impl FnOnce(&mut [u8])) {
    // SAFETY: the file is as large as the memory, and the mapping is used by `look` only.
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(null_mut(), size, rights, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        look(bytes(at, size));
        libc::munmap(at, size);
    }
}

#[test]
fn the_descriptor_in_every_handle_begins_at_the_memory() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        for (memory, size) in memories(setup) {
            // A handle for a place inside leads to the beginning of the memory, too.
            let handle = get(setup, (memory as usize + size / 2) as *const c_void);
            pipe.send(&number_in(handle).to_ne_bytes());
            pipe.send(&(size as u64).to_ne_bytes());
            pipe.receive::<1>();
            assert!(bytes(memory, size).iter().all(|byte| *byte == 0xee));
        }
        return pipe.send(&0_i32.to_ne_bytes());
    }
    let mut peer = Peer::start(this_test!(), "producer");
    let mut count = 0_u8;
    loop {
        let number = i32::from_ne_bytes(peer.receive());
        if number == 0 {
            break;
        }
        let size = u64::from_ne_bytes(peer.receive()) as usize;
        count += 1;
        with_mapped_file(&passing::fetch(peer.process.id(), number), size, |memory| {
            assert!(memory.iter().all(|byte| *byte == count), "memory {count}");
            memory.fill(0xee);
        });
        peer.send(b"!");
    }
    assert_eq!(usize::from(count), 3 * SIZES.len() + 1);
    peer.end();
}

#[test]
fn a_descriptor_and_zeros_are_a_handle_however_the_descriptor_came() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        let socket = passing::connect(u32::from_ne_bytes(pipe.receive()));
        let made = memories(setup);
        pipe.send(&[made.len() as u8]);
        for (memory, size) in made {
            let handle = get(setup, memory);
            passing::send(&socket, number_in(handle));
            pipe.send(&number_in(handle).to_ne_bytes());
            pipe.send(&(size as u64).to_ne_bytes());
            pipe.receive::<1>();
            assert!(bytes(memory, size).iter().all(|byte| *byte == 0xee));
        }
        return;
    }
    let (listener, number) = passing::listen();
    let mut peer = Peer::start(this_test!(), "producer");
    peer.send(&number.to_ne_bytes());
    let (socket, _) = listener.accept().unwrap();
    let [count] = peer.receive();
    for index in 1..=count {
        let sent = passing::receive(&socket);
        let fetched = passing::fetch(peer.process.id(), i32::from_ne_bytes(peer.receive()));
        let size = u64::from_ne_bytes(peer.receive()) as usize;
        let opened = [&sent, &fetched].map(|file| open(setup, bare(file.as_raw_fd())));
        let expected = if index == count { 2 } else { [2, 1, 3][(usize::from(index) - 1) % 3] };
        assert_eq!(describe(setup, opened[0]).0.kind, expected);
        assert_eq!(range(setup, opened[0]), (opened[0], size));
        // The opened memory does not need the descriptors.
        drop((sent, fetched));
        assert!(bytes(opened[0], size).iter().all(|byte| *byte == index), "memory {index}");
        bytes(opened[1], size).fill(0xee);
        for memory in opened {
            ok(zeMemCloseIpcHandle(setup.context, memory));
        }
        peer.send(b"!");
    }
    peer.end();
}

#[test]
fn whoever_has_the_descriptor_has_the_memory_as_with_a_dma_buf() {
    let setup = Setup::new();
    let memory = setup.device_memory(5000);
    bytes(memory, 5000).fill(7);
    let handle = get(setup, memory);
    let mine = passing::fetch(std::process::id(), number_in(handle));
    ok(zeMemPutIpcHandle(setup.context, handle));
    setup.free(memory);
    assert_eq!(refused(setup, handle), INVALID_ARGUMENT);
    let opened = open(setup, bare(mine.as_raw_fd()));
    drop(mine);
    assert!(bytes(opened, 5000).iter().all(|byte| *byte == 7));
    ok(zeMemCloseIpcHandle(setup.context, opened));
}

/// A file with the type and the seals of those of the device, and with this description at its end.
fn forged(size: usize, description: &[u64]) -> File {
    // SAFETY: plain calls that make a descriptor, which the file owns, and seal it.
    unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let file = File::from_raw_fd(libc::memfd_create(c"forged".as_ptr(), flags));
        file.set_len(size as u64).unwrap();
        let words: Vec<u8> = description.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all_at(&words, size.saturating_sub(PAGE) as u64).unwrap();
        file.set_len(size as u64).unwrap();
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
        file
    }
}

#[test]
fn a_file_is_believed_only_as_far_as_it_bears_out_what_it_says() {
    alone!();
    let setup = Setup::new();
    let magic = u64::from_le_bytes(*b"zsrange2");
    let page = PAGE as u64;
    let before = (open_descriptors(), mappings());
    for (size, description) in [
        (0, vec![]),
        (PAGE - 1, vec![]),
        (PAGE, vec![magic, 0, 0, 2]),
        (2 * PAGE, vec![]),
        (2 * PAGE, vec![magic ^ 1, page, page, 2]),
        (2 * PAGE, vec![magic, 2 * page, page, 2]),
        (2 * PAGE, vec![magic, u64::MAX, page, 2]),
        (2 * PAGE, vec![magic, page, 0, 2]),
        (2 * PAGE, vec![magic, page, page + 1, 2]),
        (2 * PAGE, vec![magic, page, u64::MAX, 2]),
        (2 * PAGE, vec![magic, page, page, 0]),
        (2 * PAGE, vec![magic, page, page, 4]),
        (2 * PAGE, vec![magic, page, page, 0x100]),
        (2 * PAGE, vec![magic, page, page, 1 << 16 | 2]),
        (2 * PAGE, vec![magic, page, page, 2, 0x100]),
        (2 * PAGE + 1, vec![magic, page + 1, page + 1, 2]),
        (3 * PAGE, vec![magic, 2 * page, page, 2]),
    ] {
        let file = forged(size, &description);
        assert_eq!(refused(setup, bare(file.as_raw_fd())), INVALID_ARGUMENT, "{size} {description:x?}");
    }
    // Words that are almost right, in any combination.
    let mut state = 1_u64;
    for _ in 0..3000 {
        let mut description = [magic, 2 * page, 2 * page - 7, 2, 0];
        for _ in 0..2 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = (state >> 33) as usize % 5;
            let change = state >> 59;
            description[word] = match change % 4 {
                0 => description[word].wrapping_add(change),
                1 => description[word] ^ 1 << (state >> 40 & 63),
                2 => description[word].wrapping_mul(page),
                _ => u64::MAX - change,
            };
        }
        let file = forged(3 * PAGE, &description);
        let mut out = null_mut();
        if zeMemOpenIpcHandle(setup.context, setup.device, bare(file.as_raw_fd()), 0, &raw mut out) == SUCCESS {
            let (_, size) = range(setup, out);
            assert!(size > PAGE && size <= 2 * PAGE, "{description:x?}");
            bytes(out, size).fill(1);
            ok(zeMemCloseIpcHandle(setup.context, out));
        }
    }
    // Other files, numbers that are no descriptors, and memory that nobody has exported.
    let ordinary = File::open("/proc/self/exe").unwrap();
    let memory = setup.device_memory(PAGE);
    let links = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
    let is_memory = |path: &Path| std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("ze_soft"));
    let own = links.filter(|entry| is_memory(&entry.path())).map(|entry| entry.file_name());
    let own: Vec<i32> = own.map(|name| name.to_str().unwrap().parse().unwrap()).collect();
    assert_eq!(own.len(), 1);
    for number in [0, 1, -1, i32::MAX, ordinary.as_raw_fd(), own[0]] {
        assert_eq!(refused(setup, bare(number)), INVALID_ARGUMENT, "{number}");
    }
    setup.free(memory);
    drop(ordinary);
    // One that bears itself out is opened, whoever made it: he has shared no more than his own file.
    let file = forged(3 * PAGE, &[magic, 2 * page, page + 5, 3]);
    let opened = open(setup, bare(file.as_raw_fd()));
    bytes(opened, PAGE + 5).fill(1);
    ok(zeMemCloseIpcHandle(setup.context, opened));
    drop(file);
    assert_eq!((open_descriptors(), mappings()), before);
}

/// The result of an allocation of each kind that imports a descriptor.
fn import(setup: Setup, kind: u32, number: i32, flags: u32, size: usize, alignment: usize) -> (u32, *mut c_void) {
    let next = ExternalMemoryImportFd { s_type: ExternalMemoryImportFd::S_TYPE, flags, fd: number, ..zeroed() };
    let p_next = (&raw const next).cast_mut().cast();
    let mut out = null_mut();
    let result = allocate_with(setup, kind, p_next, size, alignment, &raw mut out);
    (result, out)
}

#[test]
fn ordinary_memory_is_exported_and_imported_as_a_dma_buf() {
    let setup = Setup::new();
    if role().is_some() {
        let pipe = Pipe::open();
        for (memory, size) in memories(setup).into_iter().take(3 * SIZES.len()) {
            let (result, _, number) = query(setup, memory, 2);
            ok(result);
            pipe.send(&number.to_ne_bytes());
            pipe.send(&(size as u64).to_ne_bytes());
            pipe.receive::<1>();
            assert!(bytes(memory, size).iter().all(|byte| *byte == 0xee));
            setup.free(memory);
            pipe.send(b"f");
        }
        return;
    }
    let mut peer = Peer::start(this_test!(), "producer");
    let list = setup.immediate_list(1);
    for index in 1..=3 * SIZES.len() {
        let file = passing::fetch(peer.process.id(), i32::from_ne_bytes(peer.receive()));
        let size = u64::from_ne_bytes(peer.receive()) as usize;
        let kind = 1 + index as u32 % 3;
        let (result, memory) = import(setup, kind, file.as_raw_fd(), 2, size, if index % 2 == 0 { 1 << 21 } else { 0 });
        ok(result);
        drop(file);
        assert!(index % 2 == 1 || (memory as usize).is_multiple_of(1 << 21));
        assert!(bytes(memory, size).iter().all(|byte| usize::from(*byte) == index), "memory {index}");
        assert_eq!(range(setup, memory), (memory, size));
        // It is not exported once more.
        assert_eq!(query(setup, memory, 2), (UNSUPPORTED_FEATURE, kind, -1));
        let mut handle: IpcHandle = zeroed();
        assert_eq!(zeMemGetIpcHandle(setup.context, memory, &raw mut handle), INVALID_ARGUMENT);
        let pattern = 0xee_u8;
        let place = (&raw const pattern).cast();
        ok(zeCommandListAppendMemoryFill(list, memory, place, 1, size, null_mut(), 0, null()));
        peer.send(b"!");
        peer.receive::<1>();
        // Freed by its exporter, it stays until it is freed here; it was not opened, so it is not closed.
        assert_eq!(bytes(memory, size)[size - 1], 0xee);
        assert_eq!(zeMemCloseIpcHandle(setup.context, memory), INVALID_ARGUMENT);
        setup.free(memory);
        assert_eq!(zeMemFree(setup.context, memory), INVALID_ARGUMENT);
    }
    peer.end();
}

#[test]
fn only_exported_memory_is_imported() {
    alone!();
    let setup = Setup::new();
    let memory = setup.device_memory(5000);
    let ordinary = File::open("/proc/self/exe").unwrap();
    let number = query(setup, memory, 2).2;
    let before = (open_descriptors(), mappings());
    for kind in 1..=3 {
        for number in [-1, 0, 1 << 20, ordinary.as_raw_fd()] {
            assert_eq!(import(setup, kind, number, 2, 5000, 0), (INVALID_ARGUMENT, null_mut()));
        }
        // What is left of the last page belongs to the memory, and nothing behind it.
        for size in [0, 2 * PAGE + 1, usize::MAX] {
            assert_eq!(import(setup, kind, number, 2, size, 0), (UNSUPPORTED_SIZE, null_mut()));
        }
        assert_eq!(import(setup, kind, number, 2, 5000, usize::MAX / 3), (UNSUPPORTED_ALIGNMENT, null_mut()));
        assert_eq!(import(setup, kind, number, 1 << 2, 5000, 0), (UNSUPPORTED_ENUMERATION, null_mut()));
        assert_eq!(import(setup, kind, number, 1 << 9, 5000, 0), (INVALID_ENUMERATION, null_mut()));
        let (result, imported) = import(setup, kind, number, 0, 100, 0);
        ok(result);
        bytes(imported, 100)[99] = kind as u8;
        assert_eq!(bytes(memory, 100)[99], kind as u8);
        setup.free(imported);
    }
    assert_eq!((open_descriptors(), mappings()), before);
}

/// The function with this name that the driver offers beyond ze_api.h.
fn extension(name: &std::ffi::CStr) -> *const c_void {
    let mut address = null();
    ok(zeDriverGetExtensionFunctionAddress(driver(), name.as_ptr(), &raw mut address));
    address
}

/// MPICH and Intel SHMEM share memory by these functions, and make handles of descriptors.
#[test]
fn the_handles_of_all_tiles_are_one() {
    type Get = extern "C" fn(Handle, *const c_void, *mut u32, *mut IpcHandle) -> u32;
    type Open = extern "C" fn(Handle, Handle, u32, *const IpcHandle, u32, *mut *mut c_void) -> u32;
    // SAFETY: the signatures are those of Intel's zex_memory.h.
    let (get_all, open_all) = unsafe {
        let get = extension(c"zexMemGetIpcHandles");
        let open = extension(c"zexMemOpenIpcHandles");
        (std::mem::transmute::<*const c_void, Get>(get), std::mem::transmute::<*const c_void, Open>(open))
    };
    let setup = Setup::new();
    let memory = setup.device_memory(5000);
    let inside = (memory as usize + 4000) as *const c_void;
    let mut count = 0;
    ok(get_all(setup.context, inside, &raw mut count, null_mut()));
    assert_eq!(count, 1);
    let (mut handles, mut out): ([IpcHandle; 2], _) = (zeroed(), null_mut());
    for asked in 0..3 {
        count = asked;
        ok(get_all(setup.context, inside, &raw mut count, handles.as_mut_ptr()));
        assert_eq!((count, handles[0].data), (1, get(setup, memory).data));
    }
    for handle in [handles[0], bare(number_in(handles[0]))] {
        ok(open_all(setup.context, setup.device, 1, &raw const handle, 0, &raw mut out));
        bytes(memory, 5000)[9] = bytes(out, 5000)[9] + 1;
        assert_eq!(bytes(out, 5000)[9], bytes(memory, 5000)[9]);
        ok(zeMemCloseIpcHandle(setup.context, out));
    }
    out = null_mut();
    for count in [0, 2] {
        let result = open_all(setup.context, setup.device, count, handles.as_ptr(), 0, &raw mut out);
        assert_eq!((result, out), (INVALID_ARGUMENT, null_mut()));
    }
    let result = open_all(setup.context, setup.device, 1, null(), 0, &raw mut out);
    assert_eq!(result, INVALID_NULL_POINTER);
    let here = (&raw const count).cast();
    assert_eq!(get_all(setup.context, here, &raw mut count, handles.as_mut_ptr()), INVALID_ARGUMENT);
    assert_eq!(get_all(setup.context, memory, null_mut(), handles.as_mut_ptr()), INVALID_NULL_POINTER);
}

#[test]
fn memory_has_files_of_its_own_until_half_of_the_descriptors_are_used() {
    alone!();
    limit_descriptors(100);
    let setup = Setup::new();
    let held: Vec<_> = (0..200).map(|_| setup.device_memory(5000)).collect();
    let alone = |memory: &*mut c_void| {
        let handle = get(setup, *memory);
        let mut out = null_mut();
        match zeMemOpenIpcHandle(setup.context, setup.device, bare(number_in(handle)), 0, &raw mut out) {
            SUCCESS => {
                ok(zeMemCloseIpcHandle(setup.context, out));
                true
            }
            result => {
                assert_eq!(result, INVALID_ARGUMENT);
                assert_eq!(query(setup, *memory, 2), (UNSUPPORTED_FEATURE, 2, -1));
                false
            }
        }
    };
    let found: Vec<bool> = held.iter().map(alone).collect();
    assert_eq!(found.iter().filter(|alone| **alone).count(), 50);
    assert!(found[..50].iter().all(|alone| *alone), "the first ones have them");
    // A handle with all of its bytes opens any of them.
    for memory in &held {
        let opened = open(setup, get(setup, *memory));
        bytes(*memory, 1)[0] = 9;
        assert_eq!(bytes(opened, 1)[0], 9);
        ok(zeMemCloseIpcHandle(setup.context, opened));
    }
    for memory in held {
        setup.free(memory);
    }
    let memory = setup.device_memory(5000);
    assert!(alone(&memory));
    setup.free(memory);
    // An application that has used up its descriptors still gets memory.
    setup.device_memory(1);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/proc/self/exe") {
        taken.push(file);
    }
    let memory = setup.device_memory(5000);
    bytes(memory, 5000).fill(1);
    drop(taken);
}

#[test]
fn low_numbers_stay_for_the_application() {
    alone!();
    let setup = Setup::new();
    limit_descriptors(2048);
    let memory = setup.device_memory(5000);
    // select(2) cannot handle numbers from FD_SETSIZE on.
    assert!(number_in(get(setup, memory)) >= libc::FD_SETSIZE as i32);
    limit_descriptors(1024);
    let other = setup.device_memory(5000);
    assert!(number_in(get(setup, other)) < libc::FD_SETSIZE as i32);
}
