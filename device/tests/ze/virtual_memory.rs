//! Virtual memory: reservations, mappings and access, for the host and for commands.

use crate::api::*;
use crate::memory::{describe, touch};

const PAGE: usize = 4096;
const NONE: u32 = 0;
const READ_WRITE: u32 = 1;
const READ_ONLY: u32 = 2;

fn at(base: *const c_void, pages: usize) -> *mut c_void {
    (base as usize + pages * PAGE) as *mut c_void
}

fn access(setup: Setup, base: *const c_void, pages: usize) -> (u32, usize) {
    let mut access = 77;
    let mut size = 0;
    ok(zeVirtualMemGetAccessAttribute(setup.context, base, pages * PAGE, &raw mut access, &raw mut size));
    (access, size / PAGE)
}

#[test]
fn the_page_size_is_one_for_all_sizes() {
    let setup = Setup::new();
    let mut size = 0;
    for asked in [0, 1, 4096, 1 << 30] {
        ok(zeVirtualMemQueryPageSize(setup.context, setup.device, asked, &raw mut size));
        assert_eq!(size, PAGE);
    }
    assert_eq!(zeVirtualMemQueryPageSize(setup.context, setup.device, 1, null_mut()), INVALID_NULL_POINTER);
}

#[test]
fn several_memories_lie_side_by_side_in_one_reservation() {
    let (setup, list) = Setup::with_list(1);
    let pages = [3, 1, 5];
    let base = setup.reserve(9 * PAGE);
    let memories = pages.map(|count| setup.physical(count * PAGE));
    let mut first = 0;
    for (memory, count) in memories.into_iter().zip(pages) {
        ok(zeVirtualMemMap(setup.context, at(base, first), count * PAGE, memory, 0, READ_WRITE));
        first += count;
    }
    assert!(bytes(base, 9 * PAGE).iter().all(|byte| *byte == 0));
    // Commands access ranges across mappings, and queries report device memory.
    let source = setup.device_memory(9 * PAGE);
    for (index, byte) in bytes(source, 9 * PAGE).iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    copy(list, base, source, 9 * PAGE);
    assert!(bytes(base, 9 * PAGE) == bytes(source, 9 * PAGE));
    let pattern = [1_u8, 2, 3];
    let fill = (base as usize + PAGE) as *mut c_void;
    ok(append!(zeCommandListAppendMemoryFill(list, fill, pattern.as_ptr().cast(), 3, 6000)));
    assert!(bytes(fill, 6000).iter().enumerate().all(|(index, byte)| usize::from(*byte) == index % 3 + 1));
    for (page, base_page, count) in [(0, 0, 3), (2, 0, 3), (3, 3, 1), (4, 4, 5), (8, 4, 5)] {
        let (properties, device) = describe(setup, at(base, page));
        assert_eq!((properties.kind, properties.page_size, device), (2, PAGE as u64, setup.device));
        assert_eq!(range(setup, at(base, page)), (at(base, base_page), count * PAGE));
    }
    // Freeing the reservation unmaps; the memory lives on and can be mapped elsewhere.
    ok(zeVirtualMemFree(setup.context, base, 9 * PAGE));
    let other = setup.reserve(PAGE);
    ok(zeVirtualMemMap(setup.context, other, PAGE, memories[2], 4 * PAGE, READ_ONLY));
    assert!(bytes(other, PAGE) == &bytes(source, 9 * PAGE)[8 * PAGE..]);
    ok(zeVirtualMemFree(setup.context, other, PAGE));
    for memory in memories {
        ok(zePhysicalMemDestroy(setup.context, memory));
    }
    setup.free(source);
    ok(zeCommandListDestroy(list));
}

#[test]
fn parts_of_a_memory_can_be_mapped_anywhere_and_twice() {
    let setup = Setup::new();
    let memory = setup.physical(4 * PAGE);
    let base = setup.reserve(8 * PAGE);
    ok(zeVirtualMemMap(setup.context, base, 4 * PAGE, memory, 0, READ_WRITE));
    ok(zeVirtualMemMap(setup.context, at(base, 6), 2 * PAGE, memory, PAGE, READ_WRITE));
    bytes(at(base, 1), 1)[0] = 11;
    bytes(at(base, 7), 1)[0] = 22;
    assert_eq!((bytes(at(base, 6), 1)[0], bytes(at(base, 2), 1)[0]), (11, 22));
    // Destroyed while it is mapped: it stays until it is unmapped.
    ok(zePhysicalMemDestroy(setup.context, memory));
    assert_eq!(bytes(at(base, 6), 1)[0], 11);
    ok(zeVirtualMemFree(setup.context, base, 8 * PAGE));
}

#[test]
fn access_is_enforced_and_reported() {
    let setup = Setup::new();
    let memory = setup.physical(4 * PAGE);
    let base = setup.reserve(6 * PAGE);
    assert_eq!((access(setup, base, 6), touch(base)), ((NONE, 6), (false, false)));
    ok(zeVirtualMemMap(setup.context, at(base, 1), 4 * PAGE, memory, 0, READ_WRITE));
    assert_eq!((access(setup, base, 6), touch(base)), ((NONE, 1), (false, false)));
    assert_eq!((access(setup, at(base, 1), 5), touch(at(base, 1))), ((READ_WRITE, 4), (true, true)));
    ok(zeVirtualMemSetAccessAttribute(setup.context, at(base, 2), 2 * PAGE, READ_ONLY));
    assert_eq!((access(setup, at(base, 1), 5), touch(at(base, 1))), ((READ_WRITE, 1), (true, true)));
    assert_eq!((access(setup, at(base, 2), 4), touch(at(base, 3))), ((READ_ONLY, 2), (false, true)));
    assert_eq!((access(setup, at(base, 4), 2), touch(at(base, 4))), ((READ_WRITE, 1), (true, true)));
    ok(zeVirtualMemSetAccessAttribute(setup.context, at(base, 3), PAGE, NONE));
    assert_eq!((access(setup, at(base, 3), 1), touch(at(base, 3))), ((NONE, 1), (false, false)));
    // It is still one mapping, whatever the access to its pages.
    assert_eq!(range(setup, at(base, 3)), (at(base, 1), 4 * PAGE));
    ok(zeVirtualMemSetAccessAttribute(setup.context, at(base, 1), 4 * PAGE, READ_WRITE));
    assert_eq!((access(setup, at(base, 1), 4), touch(at(base, 3))), ((READ_WRITE, 4), (true, true)));
    ok(zeVirtualMemUnmap(setup.context, at(base, 2), PAGE));
    assert_eq!((access(setup, at(base, 2), 4), touch(at(base, 2))), ((NONE, 1), (false, false)));
    assert_eq!((touch(at(base, 1)), touch(at(base, 3))), ((true, true), (true, true)));
    assert_eq!(range(setup, at(base, 3)), (at(base, 3), 2 * PAGE));
    assert_eq!(describe(setup, at(base, 2)).0.kind, 0);
    assert_eq!(zeMemGetAddressRange(setup.context, at(base, 2), null_mut(), null_mut()), INVALID_ARGUMENT);
    // Other memory can be mapped in the hole.
    let other = setup.physical(PAGE);
    ok(zeVirtualMemMap(setup.context, at(base, 2), PAGE, other, 0, READ_WRITE));
    assert_eq!(bytes(at(base, 2), 1)[0], 0);
    ok(zeVirtualMemFree(setup.context, base, 6 * PAGE));
    ok(zePhysicalMemDestroy(setup.context, memory));
    ok(zePhysicalMemDestroy(setup.context, other));
}

#[test]
fn a_preferred_address_is_used_if_it_is_free() {
    let setup = Setup::new();
    let base = setup.reserve(4 * PAGE);
    let elsewhere = make(|out| zeVirtualMemReserve(setup.context, base, PAGE, out));
    assert_ne!(elsewhere, base);
    ok(zeVirtualMemFree(setup.context, elsewhere, PAGE));
    // A range so large that no other thread maps in the middle of it meanwhile.
    let wide = setup.reserve(1 << 40);
    ok(zeVirtualMemFree(setup.context, wide, 1 << 40));
    let wanted = (wide as usize + (1 << 39)) as *mut c_void;
    let found = make(|out| zeVirtualMemReserve(setup.context, wanted, PAGE, out));
    assert_eq!(found, wanted);
    ok(zeVirtualMemFree(setup.context, found, PAGE));
    ok(zeVirtualMemFree(setup.context, base, 4 * PAGE));
}

#[test]
fn invalid_ranges_are_refused_and_change_nothing() {
    let setup = Setup::new();
    let context = setup.context;
    let memory = setup.physical(2 * PAGE);
    let base = setup.reserve(4 * PAGE);
    let mut out = null_mut();
    let odd = (base as usize + 8) as *mut c_void;
    for (result, expected) in [
        (zeVirtualMemReserve(null_mut(), null(), PAGE, &raw mut out), INVALID_NULL_HANDLE),
        (zeVirtualMemReserve(context, null(), PAGE, null_mut()), INVALID_NULL_POINTER),
        (zeVirtualMemReserve(context, null(), 0, &raw mut out), UNSUPPORTED_SIZE),
        (zeVirtualMemReserve(context, null(), 100, &raw mut out), UNSUPPORTED_SIZE),
        (zeVirtualMemReserve(context, odd, PAGE, &raw mut out), UNSUPPORTED_ALIGNMENT),
        (zeVirtualMemReserve(context, null(), usize::MAX - PAGE + 1, &raw mut out), OUT_OF_HOST_MEMORY),
        (zeVirtualMemMap(context, null(), PAGE, memory, 0, READ_WRITE), INVALID_NULL_POINTER),
        (zeVirtualMemMap(context, base, PAGE, null_mut(), 0, READ_WRITE), INVALID_NULL_HANDLE),
        (zeVirtualMemMap(context, base, PAGE, context, 0, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemMap(context, base, PAGE, memory, 0, 3), INVALID_ENUMERATION),
        (zeVirtualMemMap(context, base, 0, memory, 0, READ_WRITE), UNSUPPORTED_SIZE),
        (zeVirtualMemMap(context, base, 100, memory, 0, READ_WRITE), UNSUPPORTED_SIZE),
        (zeVirtualMemMap(context, odd, PAGE, memory, 0, READ_WRITE), UNSUPPORTED_ALIGNMENT),
        (zeVirtualMemMap(context, base, PAGE, memory, 8, READ_WRITE), UNSUPPORTED_ALIGNMENT),
        (zeVirtualMemMap(context, base, 3 * PAGE, memory, 0, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemMap(context, base, 2 * PAGE, memory, PAGE, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemMap(context, base, PAGE, memory, usize::MAX - PAGE + 1, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemMap(context, at(base, 3), 2 * PAGE, memory, 0, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemMap(context, PAGE as *mut c_void, PAGE, memory, 0, READ_WRITE), INVALID_ARGUMENT),
        (zeVirtualMemUnmap(context, base, PAGE), INVALID_ARGUMENT),
        (zeVirtualMemUnmap(context, base, 0), UNSUPPORTED_SIZE),
        (zeVirtualMemUnmap(context, odd, PAGE), UNSUPPORTED_ALIGNMENT),
        (zeVirtualMemSetAccessAttribute(context, base, PAGE, READ_ONLY), INVALID_ARGUMENT),
        (zeVirtualMemSetAccessAttribute(context, base, PAGE, 9), INVALID_ENUMERATION),
        (zeVirtualMemGetAccessAttribute(context, base, PAGE, null_mut(), null_mut()), INVALID_NULL_POINTER),
        (zeVirtualMemFree(context, base, PAGE), INVALID_ARGUMENT),
        (zeVirtualMemFree(context, at(base, 1), 3 * PAGE), INVALID_ARGUMENT),
        (zeVirtualMemFree(context, null(), PAGE), INVALID_NULL_POINTER),
        (zeVirtualMemFree(context, base, 0), UNSUPPORTED_SIZE),
        (zeVirtualMemFree(context, odd, PAGE), UNSUPPORTED_ALIGNMENT),
    ] {
        assert_eq!(result, expected);
    }
    assert!(out.is_null());
    ok(zeVirtualMemMap(context, at(base, 1), 2 * PAGE, memory, 0, READ_WRITE));
    // Mapping where something is mapped, and unmapping or protecting beyond it.
    for first in 0..3 {
        assert_eq!(zeVirtualMemMap(context, at(base, first), 2 * PAGE, memory, 0, READ_WRITE), INVALID_ARGUMENT);
    }
    for (first, count) in [(0, 2), (2, 2), (0, 4)] {
        assert_eq!(zeVirtualMemUnmap(context, at(base, first), count * PAGE), INVALID_ARGUMENT);
        assert_eq!(zeVirtualMemSetAccessAttribute(context, at(base, first), count * PAGE, NONE), INVALID_ARGUMENT);
    }
    assert_eq!((access(setup, at(base, 1), 3), touch(at(base, 2))), ((READ_WRITE, 2), (true, true)));
    ok(zeVirtualMemFree(context, base, 4 * PAGE));
    assert_eq!(zeVirtualMemFree(context, base, 4 * PAGE), INVALID_ARGUMENT);
}

#[test]
fn work_in_flight_keeps_memory_that_is_unmapped_too_early() {
    let (setup, list) = Setup::with_list(2);
    let [gate] = setup.events();
    let base = setup.reserve(3 * PAGE);
    let result = setup.device_memory(PAGE);
    let [one, two, three] = [(); 3].map(|()| setup.physical(PAGE));
    ok(zeVirtualMemMap(setup.context, base, PAGE, one, 0, READ_WRITE));
    ok(zeVirtualMemMap(setup.context, at(base, 1), PAGE, two, 0, READ_WRITE));
    bytes(base, PAGE).fill(5);
    ok(zeCommandListAppendMemoryCopy(list, result, base, PAGE, null_mut(), 1, &raw const gate));
    ok(append!(zeCommandListAppendMemoryFill(list, at(base, 1), base, 1, PAGE)));
    ok(zeVirtualMemUnmap(setup.context, base, 2 * PAGE));
    ok(zePhysicalMemDestroy(setup.context, one));
    assert_eq!(access(setup, base, 2), (NONE, 2));
    // The second page is mapped again meanwhile.
    ok(zeVirtualMemMap(setup.context, at(base, 1), PAGE, three, 0, READ_WRITE));
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert!(bytes(result, PAGE).iter().all(|byte| *byte == 5));
    assert_eq!((touch(base), touch(at(base, 1))), ((false, false), (true, true)));
    // The same for a whole reservation.
    ok(zeEventHostReset(gate));
    ok(zeCommandListAppendMemoryCopy(list, result, at(base, 1), PAGE, null_mut(), 1, &raw const gate));
    ok(zeVirtualMemFree(setup.context, base, 3 * PAGE));
    ok(zePhysicalMemDestroy(setup.context, three));
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert_eq!(touch(at(base, 1)), (false, false));
}

#[test]
fn a_command_has_no_more_access_than_the_host() {
    use std::os::unix::process::ExitStatusExt;

    let Some(access) = role() else {
        for access in [NONE, READ_ONLY] {
            let output = child(this_test!(), &access.to_string(), &[]).output().unwrap();
            assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{access}");
        }
        run_child(child(this_test!(), &READ_WRITE.to_string(), &[]));
        return;
    };
    // The fault is expected, and must leave no core file. SAFETY: the kernel reads the limit, which lives on our stack.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
    let setup = Setup::new();
    let list = setup.immediate_list(2);
    let memory = setup.physical(PAGE);
    let base = setup.reserve(PAGE);
    ok(zeVirtualMemMap(setup.context, base, PAGE, memory, 0, access.parse().unwrap()));
    copy(list, base, setup.device_memory(PAGE), PAGE);
    ok(zeCommandListHostSynchronize(list, FOREVER));
}
