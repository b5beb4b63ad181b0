//! Command lists, queues, events and fences: effects, order, and appends that return before the work.
//!
//! A gate is an event that only the test signals. Commands behind it in a list cannot run earlier, however the threads
//! are scheduled; where a test must show that a command waited, it compares the timestamp of the command with the time
//! at which the gate was opened.

use crate::api::*;

const SIZE: usize = 100_003;

/// Appends a wait for a gate, and returns the gate.
pub(super) fn gated(setup: Setup, list: Handle) -> Handle {
    let [gate] = setup.events();
    ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const gate));
    gate
}

fn numbered(memory: &mut [u8]) {
    for (index, byte) in memory.iter_mut().enumerate() {
        *byte = (index * 31 % 251) as u8;
    }
}

#[test]
fn an_append_returns_before_the_work_and_the_event_is_signalled_after_it() {
    let (setup, list) = Setup::with_list(2);
    let [done] = setup.events();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    let gate = gated(setup, list);
    ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, done, 0, null()));
    // The append has returned, and the gate holds the copy up.
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    assert_eq!(zeEventHostSynchronize(done, nanoseconds(Duration::from_millis(20))), NOT_READY);
    assert_eq!(zeCommandListHostSynchronize(list, 0), NOT_READY);
    assert!(bytes(to, SIZE).iter().all(|byte| *byte == 0));
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert_eq!(bytes(to, SIZE), bytes(from, SIZE));
    ok(zeEventQueryStatus(done));
    ok(zeCommandListHostSynchronize(list, FOREVER));
}

#[test]
fn a_synchronous_list_returns_after_the_work() {
    let (setup, list) = Setup::with_list(1);
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    copy(list, to, from, SIZE);
    assert_eq!(bytes(to, SIZE), bytes(from, SIZE));
}

#[test]
fn fills_repeat_a_pattern_of_any_size() {
    let (setup, list) = Setup::with_list(1);
    let to = setup.device_memory(SIZE);
    for pattern_size in [1, 2, 3, 4, 8, 16, 24, 128, 1000] {
        let pattern: Vec<u8> = (0..pattern_size).map(|index| (index + 1) as u8).collect();
        bytes(to, SIZE).fill(0);
        let length = SIZE - 5;
        ok(append!(zeCommandListAppendMemoryFill(list, to, pattern.as_ptr().cast(), pattern_size, length)));
        let memory = bytes(to, SIZE);
        assert!(memory[..length].iter().enumerate().all(|(at, byte)| *byte == pattern[at % pattern_size]));
        assert!(memory[length..].iter().all(|byte| *byte == 0));
    }
}

/// Any size is accepted, and of a pattern that is longer than the memory only the beginning is read.
#[test]
fn a_fill_pattern_may_be_longer_than_the_memory() {
    let (setup, list) = Setup::with_list(1);
    let to = setup.device_memory(SIZE);
    // Behind these bytes is a page that cannot be read.
    let guarded = setup.reserve(2 * 4096);
    ok(zeVirtualMemMap(setup.context, guarded, 4096, setup.physical(4096), 0, 1));
    let pattern = &mut bytes(guarded, 4096)[4096 - 100..];
    numbered(pattern);
    for pattern_size in [101, 1 << 16, 1 << 40, usize::MAX] {
        bytes(to, SIZE).fill(0xaa);
        let place = pattern.as_ptr().cast();
        ok(append!(zeCommandListAppendMemoryFill(list, to, place, pattern_size, 100)));
        assert_eq!(bytes(to, 100), pattern);
        assert!(bytes(to, SIZE)[100..].iter().all(|byte| *byte == 0xaa));
        ok(append!(zeCommandListAppendMemoryFill(list, to, place, pattern_size, 0)));
        assert_eq!(bytes(to, 100), pattern);
    }
}

#[test]
fn a_fill_pattern_may_change_once_the_append_has_returned() {
    let (setup, list) = Setup::with_list(2);
    let to = setup.device_memory(64);
    let gate = gated(setup, list);
    let mut pattern = [1_u8, 2];
    ok(append!(zeCommandListAppendMemoryFill(list, to, pattern.as_ptr().cast(), 2, 64)));
    pattern.fill(9);
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert_eq!(bytes(to, 4), [1, 2, 1, 2]);
}

#[test]
fn a_region_is_copied_row_by_row() {
    let (setup, list) = Setup::with_list(1);
    let to = setup.device_memory(4096);
    let from = setup.device_memory(4096);
    numbered(bytes(from, 4096));
    let from_region = CopyRegion { origin_x: 3, origin_y: 2, origin_z: 1, width: 5, height: 4, depth: 2 };
    let to_region = CopyRegion { origin_x: 1, origin_y: 0, origin_z: 0, width: 5, height: 4, depth: 2 };
    ok(append!(zeCommandListAppendMemoryCopyRegion(
        list,
        to,
        &raw const to_region,
        16,
        64,
        from,
        &raw const from_region,
        32,
        512
    )));
    let mut expected = vec![0; 4096];
    for z in 0..2 {
        for y in 0..4 {
            let target = z * 64 + y * 16 + 1;
            let source = (z + 1) * 512 + (y + 2) * 32 + 3;
            expected[target..target + 5].copy_from_slice(&bytes(from, 4096)[source..source + 5]);
        }
    }
    assert_eq!(bytes(to, 4096), expected);
}

#[test]
fn overlapping_ranges_are_copied_correctly() {
    let (setup, list) = Setup::with_list(1);
    let memory = setup.device_memory(1000);
    numbered(bytes(memory, 1000));
    let expected = bytes(memory, 900).to_vec();
    copy(list, bytes(memory, 1000)[100..].as_mut_ptr().cast(), memory, 900);
    assert_eq!(bytes(memory, 1000)[100..], expected);
}

#[test]
fn lists_wait_for_each_others_events_whatever_the_order_of_appends() {
    let setup = Setup::new();
    let lists = [setup.immediate_list(2), setup.immediate_list(2), setup.immediate_list(2)];
    let [first, second, third] = setup.events();
    let memory: [_; 4] = std::array::from_fn(|_| setup.device_memory(SIZE));
    numbered(bytes(memory[0], SIZE));
    // The last step is appended first.
    ok(zeCommandListAppendMemoryCopy(lists[2], memory[3], memory[2], SIZE, third, 1, &raw const second));
    ok(zeCommandListAppendMemoryCopy(lists[1], memory[2], memory[1], SIZE, second, 1, &raw const first));
    assert_eq!(zeEventQueryStatus(third), NOT_READY);
    ok(zeCommandListAppendMemoryCopy(lists[0], memory[1], memory[0], SIZE, first, 0, null()));
    ok(zeEventHostSynchronize(third, FOREVER));
    assert_eq!(bytes(memory[3], SIZE), bytes(memory[0], SIZE));
}

#[test]
fn a_barrier_waits_for_everything_before_it() {
    let (setup, list) = Setup::with_list(2);
    let [done] = setup.events();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    let gate = gated(setup, list);
    copy(list, to, from, SIZE);
    ok(zeCommandListAppendBarrier(list, done, 0, null()));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
}

#[test]
fn a_regular_list_runs_each_time_a_queue_executes_it() {
    let setup = Setup::new();
    let queue = setup.queue(2);
    let list = setup.regular_list();
    let [done] = setup.events();
    let fence = make(|fence| zeFenceCreate(queue, &zeroed(), fence));
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, done, 0, null()));
    assert_eq!(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, fence), INVALID_ARGUMENT);
    ok(zeCommandListClose(list));
    let refused = append!(zeCommandListAppendBarrier(list));
    assert_eq!(refused, INVALID_ARGUMENT);
    assert_eq!((zeEventQueryStatus(done), zeFenceQueryStatus(fence)), (NOT_READY, NOT_READY));
    for round in 1..=3 {
        bytes(from, SIZE).fill(round);
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, fence));
        ok(zeFenceHostSynchronize(fence, FOREVER));
        ok(zeEventQueryStatus(done));
        assert!(bytes(to, SIZE).iter().all(|byte| *byte == round));
        ok(zeFenceReset(fence));
        ok(zeEventHostReset(done));
        assert_eq!((zeEventQueryStatus(done), zeFenceQueryStatus(fence)), (NOT_READY, NOT_READY));
    }
    ok(zeCommandListReset(list));
    ok(zeCommandListClose(list));
    ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut()));
    ok(zeCommandQueueSynchronize(queue, FOREVER));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeFenceDestroy(fence));
    ok(zeCommandListDestroy(list));
    ok(zeCommandQueueDestroy(queue));
}

#[test]
fn a_wait_for_a_blocked_queue_times_out() {
    let setup = Setup::new();
    let queue = setup.queue(0);
    let list = setup.regular_list();
    let gate = gated(setup, list);
    ok(zeCommandListClose(list));
    let fence = make(|fence| zeFenceCreate(queue, &zeroed(), fence));
    ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, fence));
    assert_eq!(zeCommandQueueSynchronize(queue, nanoseconds(Duration::from_millis(5))), NOT_READY);
    assert_eq!(zeFenceHostSynchronize(fence, 0), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeFenceHostSynchronize(fence, FOREVER));
    ok(zeCommandQueueSynchronize(queue, FOREVER));
}

#[test]
fn immediate_lists_execute_regular_ones_too() {
    let setup = Setup::new();
    let immediate = setup.immediate_list(2);
    let regular = setup.regular_list();
    let [gate, done] = setup.events();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    copy(regular, to, from, SIZE);
    ok(zeCommandListClose(regular));
    let waits = &raw const gate;
    ok(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &raw const regular, done, 1, waits));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert_eq!(bytes(to, SIZE), bytes(from, SIZE));
}

#[test]
fn events_are_reset_by_the_host_and_by_lists() {
    let (setup, list) = Setup::with_list(1);
    let [event] = setup.events();
    ok(zeCommandListAppendSignalEvent(list, event));
    ok(zeEventQueryStatus(event));
    ok(zeCommandListAppendEventReset(list, event));
    assert_eq!(zeEventQueryStatus(event), NOT_READY);
    ok(zeEventHostSignal(event));
    ok(zeEventHostReset(event));
    assert_eq!(zeEventHostSynchronize(event, 0), NOT_READY);
}

#[test]
fn a_wait_for_a_counter_based_event_is_for_the_last_signal() {
    let setup = Setup::new();
    let list = setup.immediate_list(2);
    let other = setup.immediate_list(2);
    let event = setup.counter_event();
    let [seen] = setup.events();
    // A new event is signalled.
    ok(zeEventQueryStatus(event));
    ok(zeCommandListAppendSignalEvent(list, event));
    ok(zeEventHostSynchronize(event, FOREVER));
    // It is pending again, without a reset, as soon as the next signal is appended.
    let gate = gated(setup, list);
    ok(zeCommandListAppendSignalEvent(list, event));
    assert_eq!(zeEventQueryStatus(event), NOT_READY);
    ok(zeCommandListAppendWaitOnEvents(other, 1, &raw const event));
    ok(zeCommandListAppendSignalEvent(other, seen));
    assert_eq!(zeEventHostSynchronize(seen, nanoseconds(Duration::from_millis(5))), NOT_READY);
    let opened = now(setup);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(seen, FOREVER));
    assert!(started(seen) >= opened, "the other list did not wait for the second signal");
    ok(zeEventQueryStatus(event));
    assert_eq!([zeEventHostSignal(event), zeEventHostReset(event)], [INVALID_ARGUMENT; 2]);
    assert_eq!(zeCommandListAppendEventReset(list, event), INVALID_ARGUMENT);
}

#[test]
fn a_wait_for_a_signal_that_is_overtaken_still_waits_for_it() {
    let setup = Setup::new();
    let [slow, fast, waiting] = [(); 3].map(|()| setup.immediate_list(2));
    for event in [setup.counter_event(), setup.shared_event()] {
        let [seen] = setup.events();
        let gate = gated(setup, slow);
        ok(zeCommandListAppendSignalEvent(slow, event));
        ok(zeCommandListAppendBarrier(waiting, seen, 1, &raw const event));
        // The event is used again, as the Unified Runtime does after the application has released it.
        ok(zeCommandListAppendSignalEvent(fast, event));
        ok(zeEventHostSynchronize(event, FOREVER));
        assert_eq!(zeEventHostSynchronize(seen, nanoseconds(Duration::from_millis(5))), NOT_READY);
        let opened = now(setup);
        ok(zeEventHostSignal(gate));
        ok(zeEventHostSynchronize(seen, FOREVER));
        assert!(started(seen) >= opened, "the list did not wait for the first signal");
        ok(zeEventDestroy(event));
    }
}

#[test]
fn events_of_a_counter_based_pool_count() {
    let setup = Setup::new();
    let extension: [u64; 3] = [u64::from(stype::COUNTER_BASED_EVENT_POOL_EXP_DESC), 0, 3];
    let desc = EventPoolDesc { p_next: extension.as_ptr().cast_mut().cast(), flags: 1, count: 1, ..zeroed() };
    let pool = make(|pool| zeEventPoolCreate(setup.context, &raw const desc, 0, null(), pool));
    let event = make(|event| zeEventCreate(pool, &zeroed(), event));
    assert_eq!(zeEventHostReset(event), INVALID_ARGUMENT);
}

#[test]
fn timestamps_surround_the_work() {
    let (setup, list) = Setup::with_list(2);
    let [first, second, queried] = setup.events();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    let before = now(setup);
    let mut result: KernelTimestampResult = zeroed();
    assert_eq!(zeEventQueryKernelTimestamp(first, &raw mut result), NOT_READY);
    let (mut count, results): (_, KernelTimestampsResults) = (1, zeroed());
    let early = zeEventQueryKernelTimestampsExt(first, setup.device, &raw mut count, &raw const results);
    assert_eq!(early, NOT_READY);
    let written = setup.device_memory(4096);
    ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, first, 0, null()));
    ok(append!(zeCommandListAppendWriteGlobalTimestamp(list, written.cast())));
    ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, second, 0, null()));
    let both = [first, second];
    let results = bytes(written, 4096)[8..].as_mut_ptr().cast();
    ok(zeCommandListAppendQueryKernelTimestamps(list, 2, both.as_ptr(), results, null(), queried, 0, null()));
    ok(zeEventHostSynchronize(queried, FOREVER));
    let after = now(setup);
    let word = |at: usize| u64::from_ne_bytes(bytes(written, 4096)[at * 8..][..8].try_into().unwrap());
    ok(zeEventQueryKernelTimestamp(first, &raw mut result));
    let [start, end] = [result.global.kernel_start, result.global.kernel_end];
    assert_eq!([start, end], [result.context.kernel_start, result.context.kernel_end]);
    assert_eq!([start, end], [word(1), word(2)]);
    let (mut count, mut kernel, mut synchronized): (u32, [KernelTimestampResult; 1], [_; 1]) = zeroed();
    let to_kernel = kernel.as_mut_ptr();
    let to_synchronized = synchronized.as_mut_ptr();
    let results = KernelTimestampsResults { kernel: to_kernel, synchronized: to_synchronized, ..zeroed() };
    ok(zeEventQueryKernelTimestampsExt(first, setup.device, &raw mut count, null()));
    assert_eq!(count, 1);
    ok(zeEventQueryKernelTimestampsExt(first, setup.device, &raw mut count, &raw const results));
    for found in [kernel[0], synchronized[0]] {
        assert_eq!([found.global.kernel_start, found.context.kernel_end], [start, end]);
    }
    let order = [before, start, end, word(0), word(5), word(6), after];
    assert!(order.is_sorted(), "{order:?}");
    assert!(start < end);
}

#[test]
fn memory_that_is_freed_too_early_stays_until_the_work_is_done() {
    let (setup, list) = Setup::with_list(2);
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    let expected = bytes(from, SIZE).to_vec();
    let gate = gated(setup, list);
    copy(list, to, from, SIZE);
    setup.free(from);
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert_eq!(bytes(to, SIZE), expected);
}

#[test]
fn a_destroyed_list_completes_its_commands() {
    let (setup, list) = Setup::with_list(2);
    let [done] = setup.events();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    let gate = gated(setup, list);
    ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, done, 0, null()));
    ok(zeCommandListDestroy(list));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert_eq!(bytes(to, SIZE), bytes(from, SIZE));
}

#[test]
fn work_goes_on_when_the_event_it_waits_for_is_destroyed() {
    let (setup, list) = Setup::with_list(2);
    let gate = gated(setup, list);
    ok(zeEventDestroy(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
}

#[test]
fn a_device_is_synchronised_with_all_its_lists() {
    alone!();
    let setup = Setup::new();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    let events: [_; 4] = setup.events();
    let lists = events.map(|event| {
        let list = setup.immediate_list(2);
        ok(zeCommandListAppendMemoryCopy(list, to, from, SIZE, event, 0, null()));
        list
    });
    ok(zeDeviceSynchronize(setup.device));
    for (list, event) in lists.into_iter().zip(events) {
        ok(zeEventQueryStatus(event));
        ok(zeCommandListHostSynchronize(list, 0));
    }
}

#[test]
fn the_threads_of_lists_end_with_them() {
    alone!();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let setup = Setup::new();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    let before = threads();
    for _ in 0..200 {
        let list = setup.immediate_list(2);
        copy(list, to, from, SIZE);
        ok(zeCommandListHostSynchronize(list, FOREVER));
        ok(zeCommandListDestroy(list));
    }
    // The kernel lists a thread for a moment after it was joined, so the last ones may still be there.
    while threads() > before {
        std::thread::yield_now();
    }
}

/// The conformance tests demand it, although such a list need be neither closed nor reset.
#[test]
fn an_immediate_list_may_be_closed_and_reset_and_goes_on() {
    let (setup, list) = Setup::with_list(1);
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    numbered(bytes(from, SIZE));
    ok(zeCommandListClose(list));
    ok(zeCommandListReset(list));
    copy(list, to, from, SIZE);
    assert_eq!(bytes(to, SIZE), bytes(from, SIZE));
}

/// The adapters compare the two clocks.
#[test]
fn the_clock_is_that_of_intels_driver() {
    let raw = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: clock_gettime(2) writes the timespec that it is given.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let setup = Setup::new();
    let before = raw();
    let device = now(setup);
    let after = raw();
    assert!((before..=after).contains(&device), "{before} {device} {after}");
}
