//! Allocations: sizes, alignments, properties, limits and numbers.

use crate::api::*;

/// `ZE_MEMORY_TYPE_*`.
const TYPES: [u32; 3] = [1, 2, 3];

fn allocate(setup: Setup, kind: u32, size: usize, alignment: usize, out: *mut *mut c_void) -> u32 {
    allocate_with(setup, kind, null_mut(), size, alignment, out)
}

/// Allocates memory of a kind, with this extension of its descriptor.
pub(crate) fn allocate_with(
    setup: Setup,
    kind: u32,
    p_next: *mut c_void,
    size: usize,
    alignment: usize,
    out: *mut *mut c_void,
) -> u32 {
    let device = DeviceMemAllocDesc { p_next, ..zeroed() };
    let host = HostMemAllocDesc { p_next, ..zeroed() };
    let device = &raw const device;
    let host = &raw const host;
    let plain = zeroed();
    match kind {
        1 => zeMemAllocHost(setup.context, host, size, alignment, out),
        2 => zeMemAllocDevice(setup.context, device, size, alignment, setup.device, out),
        _ => zeMemAllocShared(setup.context, device, &raw const plain, size, alignment, setup.device, out),
    }
}

pub(crate) fn describe(setup: Setup, pointer: *const c_void) -> (MemoryAllocationProperties, Handle) {
    let (mut properties, mut device): (MemoryAllocationProperties, Handle) = (zeroed(), null_mut());
    ok(zeMemGetAllocProperties(setup.context, pointer, &raw mut properties, &raw mut device));
    (properties, device)
}

#[test]
fn memory_of_any_size_and_alignment_is_zeroed_writable_and_described() {
    let setup = Setup::new();
    let mut ids = Vec::new();
    for kind in TYPES {
        for size in [1, 63, 4095, 4096, 4097, 100_003, 3 << 20, (70 << 20) + 1] {
            for alignment in [0, 1, 64, 4096, 65536, 2 << 20, 3, 24, 12_288] {
                let pointer = make(|out| allocate(setup, kind, size, alignment, out));
                assert!((pointer as usize).is_multiple_of(alignment.max(1)), "{size} {alignment}");
                let memory = bytes(pointer, size);
                assert!(memory.iter().step_by(509).all(|byte| *byte == 0));
                (memory[0], memory[size - 1]) = (1, 2);
                let (first, device) = describe(setup, pointer);
                let (last, _) = describe(setup, (pointer as usize + size - 1) as *const c_void);
                assert_eq!((first.kind, last.kind, first.id), (kind, kind, last.id));
                assert_eq!(device, if kind == 1 { null_mut() } else { setup.device });
                assert!(first.page_size > 0);
                ids.push(first.id);
                let inside = (pointer as usize + size / 2) as *const c_void;
                assert_eq!(range(setup, inside), (pointer, size));
                setup.free(pointer);
            }
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

/// It would change what else the process has mapped, and no GPU does that.
#[test]
fn what_is_written_beyond_the_end_faults() {
    let setup = Setup::new();
    for kind in TYPES {
        for (size, alignment) in [(1, 0), (8192, 0), (5 << 20, 2 << 20), (100_003, 12_288)] {
            // Another one lies beside it.
            let pointers = [(); 2].map(|()| make(|out| allocate(setup, kind, size, alignment, out)));
            for pointer in pointers {
                let end = size.next_multiple_of(4096);
                for beyond in [0, 8191, 3 * 8192, (1 << 20) - 1] {
                    assert_eq!(touch(pointer.wrapping_byte_add(end + beyond)), (false, false), "{size}: {beyond}");
                }
                assert_eq!(touch(pointer.wrapping_byte_add(end - 1)), (true, true));
            }
            for pointer in pointers {
                setup.free(pointer);
            }
        }
    }
}

#[test]
fn reused_memory_is_zero() {
    let setup = Setup::new();
    for _ in 0..100 {
        let pointer = setup.device_memory(8192);
        assert!(bytes(pointer, 8192).iter().all(|byte| *byte == 0));
        bytes(pointer, 8192).fill(0xff);
        setup.free(pointer);
    }
}

#[test]
fn a_foreign_pointer_is_of_unknown_type() {
    let setup = Setup::new();
    let mine = Box::new(7_u64);
    for pointer in [(&raw const *mine).cast(), null()] {
        let (properties, device) = describe(setup, pointer);
        assert_eq!((properties.kind, properties.id, device), (0, 0, null_mut()));
    }
    let range = zeMemGetAddressRange(setup.context, (&raw const *mine).cast(), null_mut(), null_mut());
    assert_eq!(range, INVALID_ARGUMENT);
    assert_eq!(zeMemFree(setup.context, (&raw const *mine).cast_mut().cast()), INVALID_ARGUMENT);
}

#[test]
fn only_the_base_of_a_live_allocation_can_be_freed() {
    let setup = Setup::new();
    let pointer = setup.device_memory(10_000);
    assert_eq!(zeMemFree(setup.context, (pointer as usize + 1) as *mut c_void), INVALID_ARGUMENT);
    ok(zeMemFreeExt(setup.context, &zeroed(), pointer));
    assert_eq!(zeMemFree(setup.context, pointer), INVALID_ARGUMENT);
    assert_eq!(describe(setup, pointer).0.kind, 0);
    assert_eq!(zeMemFreeExt(setup.context, null(), pointer), INVALID_NULL_POINTER);
}

#[test]
fn impossible_allocations_are_refused_with_their_codes() {
    let setup = Setup::new();
    let mut out = null_mut();
    for kind in TYPES {
        assert_eq!(allocate(setup, kind, 0, 0, &raw mut out), UNSUPPORTED_SIZE);
        assert_eq!(allocate(setup, kind, usize::MAX, 0, &raw mut out), UNSUPPORTED_SIZE);
        assert_eq!(allocate(setup, kind, 64, usize::MAX / 3, &raw mut out), UNSUPPORTED_ALIGNMENT);
        assert_eq!(allocate(setup, kind, 64, 0, null_mut()), INVALID_NULL_POINTER);
        assert!(out.is_null());
    }
    let relaxed: [u64; 3] = [u64::from(stype::RELAXED_ALLOCATION_LIMITS_EXP_DESC), 0, 1];
    let desc = DeviceMemAllocDesc { p_next: relaxed.as_ptr().cast_mut().cast(), ..zeroed() };
    let result = zeMemAllocDevice(setup.context, &raw const desc, 1 << 50, 0, setup.device, &raw mut out);
    assert_eq!(result, OUT_OF_DEVICE_MEMORY);
}

#[test]
fn unknown_structures_in_the_chain_are_ignored() {
    let setup = Setup::new();
    let unknown: [u64; 3] = [0x0777_7777, 0, 1];
    let desc = HostMemAllocDesc { p_next: unknown.as_ptr().cast_mut().cast(), ..zeroed() };
    make(|out| zeMemAllocHost(setup.context, &raw const desc, 64, 0, out));
}

#[test]
fn a_device_allocates_up_to_its_size_and_frees() {
    alone!(&[("ZE_SOFT_MEMORY", "16M")]);
    let setup = Setup::new();
    for _ in 0..3 {
        let held: Vec<_> = (0..16).map(|_| setup.device_memory(1 << 20)).collect();
        let mut out = null_mut();
        for kind in [2, 3] {
            assert_eq!(allocate(setup, kind, 1, 0, &raw mut out), OUT_OF_DEVICE_MEMORY);
        }
        ok(allocate(setup, 1, 1 << 20, 0, &raw mut out));
        setup.free(out);
        for pointer in held {
            setup.free(pointer);
        }
    }
}

#[test]
fn thousands_of_allocations_need_few_descriptors() {
    alone!();
    limit_descriptors(64);
    let setup = Setup::new();
    let sizes = [1, 4096, 5000, 64 << 10, 200_000];
    let held: Vec<_> = (0..5000).map(|index| (setup.device_memory(sizes[index % 5]), sizes[index % 5])).collect();
    for (index, (pointer, size)) in held.iter().enumerate() {
        bytes(*pointer, *size).fill(index as u8);
    }
    let mut handle: IpcHandle = zeroed();
    for (index, (pointer, size)) in held.iter().enumerate() {
        assert!(bytes(*pointer, *size).iter().all(|byte| *byte == index as u8), "{index}");
        ok(zeMemGetIpcHandle(setup.context, *pointer, &raw mut handle));
        let opened = make(|out| zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, out));
        assert!(bytes(opened, *size).iter().all(|byte| *byte == index as u8), "{index}");
        ok(zeMemCloseIpcHandle(setup.context, opened));
    }
    for (pointer, _) in held {
        setup.free(pointer);
    }
    assert!(open_descriptors() < 16);
}

#[test]
fn attributes_of_atomic_access_are_kept_for_shared_memory() {
    let setup = Setup::new();
    let context = setup.context;
    let device = setup.device;
    let desc = zeroed();
    let host_desc = zeroed();
    let memory = make(|out| zeMemAllocShared(context, &raw const desc, &raw const host_desc, 100, 0, device, out));
    let mut found = 77;
    ok(zeMemGetAtomicAccessAttributeExp(context, device, memory, 100, &raw mut found));
    assert_eq!(found, 0);
    for attributes in [1, 0x44, 0x7f] {
        ok(zeMemSetAtomicAccessAttributeExp(context, device, memory, 100, attributes));
        ok(zeMemGetAtomicAccessAttributeExp(context, device, memory.wrapping_byte_add(99), 1, &raw mut found));
        assert_eq!(found, attributes);
    }
    assert_eq!(zeMemSetAtomicAccessAttributeExp(context, device, memory, 100, 0x80), INVALID_ENUMERATION);
    assert_eq!(zeMemSetAtomicAccessAttributeExp(context, device, memory, 101, 1), INVALID_ARGUMENT);
    let other = setup.device_memory(100);
    assert_eq!(zeMemGetAtomicAccessAttributeExp(context, device, other, 1, &raw mut found), INVALID_ARGUMENT);
    ok(zeMemFree(context, memory));
    assert_eq!(zeMemGetAtomicAccessAttributeExp(context, device, memory, 1, &raw mut found), INVALID_ARGUMENT);
}

#[test]
fn attributes_of_atomic_access_are_kept_for_memory_of_the_system_that_kernels_may_use() {
    let setup = Setup::new();
    let Some(role) = role() else {
        for usm in ["on", "off"] {
            run_child(child(this_test!(), usm, &[("ZE_SOFT_SYSTEM_USM", usm)]));
        }
        return;
    };
    let context = setup.context;
    let device = setup.device;
    let memory = [0_u8; 100];
    let at = |offset: usize| memory.as_ptr().wrapping_add(offset).cast::<c_void>();
    let set =
        |offset, size, attributes| zeMemSetAtomicAccessAttributeExp(context, device, at(offset), size, attributes);
    if role == "off" {
        assert_eq!(set(0, 100, 4), INVALID_ARGUMENT);
        return;
    }
    let found = |offset| {
        let mut found = 77;
        ok(zeMemGetAtomicAccessAttributeExp(context, device, at(offset), 1, &raw mut found));
        found
    };
    assert_eq!(found(0), 0);
    ok(set(0, 100, 4));
    ok(set(40, 20, 0x10));
    assert_eq!([0, 39, 40, 59, 60, 99].map(found), [4, 4, 0x10, 0x10, 4, 4]);
    assert_eq!(set(0, 100, 0x80), INVALID_ENUMERATION);
    assert_eq!(set(0, usize::MAX, 4), INVALID_ARGUMENT);
    let own = setup.device_memory(100);
    assert_eq!(zeMemSetAtomicAccessAttributeExp(context, device, own, 100, 4), INVALID_ARGUMENT);
}

/// Whether a byte can be written and read. The kernel checks, and reports EFAULT where an access would fault.
pub(crate) fn touch(pointer: *mut c_void) -> (bool, bool) {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors; the reads and writes below are checked by it.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let readable = libc::write(ends[1], pointer, 1) == 1;
        if !readable {
            assert_eq!(libc::write(ends[1], (&raw const readable).cast(), 1), 1);
        }
        let writable = libc::read(ends[0], pointer, 1) == 1;
        libc::close(ends[0]);
        libc::close(ends[1]);
        (writable, readable)
    }
}
