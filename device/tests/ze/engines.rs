//! Engines: what queues and lists are created with, the order of their commands, and what waits do to it.

use crate::api::*;

/// Makes work take a while: long enough that a thread of its own would be overtaken.
const LARGE: usize = 8 << 20;
const ROUNDS: usize = 300;

fn append_copy(list: Handle, to: *mut c_void, from: *const c_void, size: usize, signal: Handle) {
    ok(zeCommandListAppendMemoryCopy(list, to, from, size, signal, 0, null()));
}

/// A copy that takes a while, which a queue executes, and then others by other ways. Nothing but the order of the
/// engine makes each see what the one before it has written.
#[test]
fn an_engine_executes_in_the_order_of_submission_over_queues_and_lists() {
    let setup = Setup::new();
    let memory: [_; 4] = std::array::from_fn(|_| setup.device_memory(LARGE));
    let queue = setup.queue(2);
    let regular = setup.regular_list();
    append_copy(regular, memory[1], memory[0], LARGE, null_mut());
    ok(zeCommandListClose(regular));
    let lists = [setup.immediate_list(2), setup.immediate_list(2)];
    for round in 0..20 {
        bytes(memory[0], LARGE).fill(round + 1);
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const regular, null_mut()));
        append_copy(lists[0], memory[2], memory[1], LARGE, null_mut());
        append_copy(lists[1], memory[3], memory[2], LARGE, null_mut());
        ok(zeCommandListHostSynchronize(lists[1], FOREVER));
        assert!(bytes(memory[3], LARGE).iter().all(|byte| *byte == round + 1), "round {round}");
    }
}

/// An event is reset by way of a queue, signalled by one immediate list and waited for by another, again and again, as
/// the v1 adapter does. The event keeps its state for the next round only if all three happen in the order in which
/// they were submitted.
#[test]
fn an_event_is_reset_signalled_and_waited_for_in_the_order_of_submission() {
    let setup = Setup::new();
    let [event] = setup.events();
    let queue = setup.queue(2);
    let resetting = setup.regular_list();
    let size = 1 << 20;
    let source = setup.device_memory(size);
    let target = setup.device_memory(size);
    let seen = setup.device_memory(size);
    ok(append!(zeCommandListAppendMemoryFill(resetting, seen, [0_u8].as_ptr().cast(), 1, size)));
    ok(zeCommandListAppendEventReset(resetting, event));
    ok(zeCommandListClose(resetting));
    let signalling = setup.immediate_list(2);
    let waiting = setup.immediate_list(2);
    for round in 0..ROUNDS {
        bytes(source, size).fill(round as u8 | 1);
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const resetting, null_mut()));
        append_copy(signalling, target, source, size, event);
        ok(zeCommandListAppendMemoryCopy(waiting, seen, target, size, null_mut(), 1, &raw const event));
        ok(zeCommandListHostSynchronize(waiting, FOREVER));
        assert_eq!(bytes(seen, size)[size - 1], round as u8 | 1, "round {round}");
        ok(zeEventQueryStatus(event));
    }
}

/// One list waits for the host, and one for what is submitted later: neither holds another one up.
#[test]
fn a_list_that_waits_holds_up_no_other_one() {
    let setup = Setup::new();
    let [gate, first, second, third] = setup.events();
    let lists = [(); 3].map(|()| setup.immediate_list(2));
    // Waits for the host.
    ok(zeCommandListAppendBarrier(lists[0], first, 1, &raw const gate));
    // Waits for an event that a later submission signals.
    ok(zeCommandListAppendBarrier(lists[1], second, 1, &raw const third));
    ok(zeCommandListAppendSignalEvent(lists[2], third));
    ok(zeEventHostSynchronize(second, FOREVER));
    assert_eq!(zeEventQueryStatus(first), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(first, FOREVER));
}

/// The list is slower than the host, so the memory has its old contents when the append returns, and the new ones after
/// the wait. What only orders is not slowed.
#[test]
fn what_was_not_waited_for_is_unfinished_with_a_delay() {
    alone!(&[("ZE_SOFT_DELAY", "2s")]);
    let (setup, list) = Setup::with_list(2);
    let to = setup.device_memory(64);
    let from = setup.device_memory(64);
    bytes(from, 64).fill(1);
    let started = std::time::Instant::now();
    let [event, other] = setup.events();
    for _ in 0..100 {
        ok(zeCommandListAppendSignalEvent(list, other));
        ok(zeCommandListAppendEventReset(list, other));
        ok(append!(zeCommandListAppendBarrier(list)));
    }
    append_copy(list, to, from, 64, event);
    assert_eq!((bytes(to, 64)[0], zeEventQueryStatus(event)), (0, NOT_READY));
    ok(zeEventHostSynchronize(event, FOREVER));
    assert_eq!(bytes(to, 64)[0], 1);
    let waited = started.elapsed().as_secs();
    assert!((2..100).contains(&waited), "{waited} s");
}

/// After a second it would begin by itself, which happens here only on a busy machine.
#[test]
fn a_copy_begins_when_something_waits_for_what_is_behind_it() {
    alone!(&[("ZE_SOFT_DELAY", "until-wait")]);
    let (setup, list) = Setup::with_list(2);
    let to = setup.device_memory(64);
    let from = setup.device_memory(64);
    let [copied, behind] = setup.events();
    let mut awaited = 0;
    for round in 1..=10 {
        bytes(from, 64).fill(round);
        let started = std::time::Instant::now();
        append_copy(list, to, from, 64, copied);
        ok(zeCommandListAppendSignalEvent(list, behind));
        std::thread::sleep(Duration::from_millis(50));
        let seen = bytes(to, 64)[0];
        let is_early = || started.elapsed().as_millis() < 900;
        assert!(seen == round - 1 || !is_early(), "round {round}");
        ok(zeEventHostSynchronize(behind, FOREVER));
        assert_eq!(bytes(to, 64)[0], round);
        awaited += u32::from(is_early());
        ok(zeEventHostReset(behind));
        ok(zeEventHostReset(copied));
    }
    assert!(awaited > 0);
}

/// All are submitted while the first one has the engine, which has the highest priority itself.
#[test]
fn what_has_a_higher_priority_goes_first() {
    const NORMAL: u32 = 0;
    const LOW: u32 = 1;
    const HIGH: u32 = 2;
    alone!(&[("ZE_SOFT_DELAY", "2s")]);
    let setup = Setup::new();
    let memory = setup.device_memory(64);
    let events: [_; 4] = setup.events();
    let priorities = [HIGH, LOW, NORMAL, HIGH];
    let lists = priorities.map(|priority| setup.immediate_list_of(CommandQueueDesc { mode: 2, priority, ..zeroed() }));
    for (list, event) in lists.iter().zip(events) {
        append_copy(*list, memory, memory, 32, event);
    }
    for list in lists {
        ok(zeCommandListHostSynchronize(list, FOREVER));
    }
    let [first, low, normal, high] = events.map(started);
    assert!(first < high && high < normal && normal < low, "{first} {high} {normal} {low}");
}

/// A queue resets the event, and an immediate list waits for it afterwards: the signal from before the reset is not the
/// one that it waits for.
#[test]
fn a_wait_is_for_the_signal_after_a_reset_that_was_submitted_before() {
    let setup = Setup::new();
    let [gate, event, done] = setup.events();
    let first = setup.immediate_list(2);
    let second = setup.immediate_list(2);
    ok(zeEventHostSignal(event));
    ok(zeCommandListAppendWaitOnEvents(first, 1, &raw const gate));
    ok(zeCommandListAppendEventReset(first, event));
    ok(zeCommandListAppendBarrier(second, done, 1, &raw const event));
    assert_eq!(zeCommandListHostSynchronize(second, nanoseconds(Duration::from_millis(50))), NOT_READY);
    ok(zeEventQueryStatus(event));
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(first, FOREVER));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(event));
    ok(zeEventHostSynchronize(done, FOREVER));
}

/// What lists and queues for copies only are created with.
const FOR_COPIES: CommandListDesc =
    CommandListDesc { s_type: 0, p_next: null_mut(), command_queue_group_ordinal: 1, flags: 0 };

fn for_copies() -> CommandQueueDesc {
    CommandQueueDesc { ordinal: 1, mode: 2, ..zeroed() }
}

/// Each copies what the other one has written, and only events order them: one is signalled and waited for on both, and
/// reset by one of them.
#[test]
fn an_engine_for_copies_and_one_for_all_are_ordered_by_events() {
    let setup = Setup::new();
    let [there, back] = setup.events();
    let size = 1 << 20;
    let memory: [_; 3] = std::array::from_fn(|_| setup.device_memory(size));
    let copies = setup.immediate_list_of(for_copies());
    let all = setup.immediate_list(2);
    ok(zeEventHostSignal(back));
    for round in 0..ROUNDS {
        let value = [round as u8 | 1];
        ok(zeCommandListAppendMemoryFill(
            copies,
            memory[0],
            value.as_ptr().cast(),
            1,
            size,
            null_mut(),
            1,
            &raw const back,
        ));
        ok(zeCommandListAppendEventReset(copies, back));
        append_copy(copies, memory[1], memory[0], size, there);
        ok(zeCommandListAppendMemoryCopy(all, memory[2], memory[1], size, null_mut(), 1, &raw const there));
        ok(zeCommandListAppendEventReset(all, there));
        ok(zeCommandListAppendSignalEvent(all, back));
        ok(zeCommandListHostSynchronize(all, FOREVER));
        assert!(bytes(memory[2], size).iter().all(|byte| *byte == value[0]), "round {round}");
    }
}

#[test]
fn a_group_for_copies_takes_no_large_patterns_and_no_lists_of_the_other_group() {
    let setup = Setup::new();
    let memory = setup.device_memory(64);
    let pattern = [7_u8; 64];
    let [event] = setup.events();
    let queue = setup.queue_of(for_copies());
    let regular = setup.regular_list_of(FOR_COPIES);
    let immediate = setup.immediate_list_of(for_copies());
    let fill =
        |list, size| zeCommandListAppendMemoryFill(list, memory, pattern.as_ptr().cast(), size, 64, event, 0, null());
    for list in [regular, immediate] {
        assert_eq!([fill(list, 32), fill(list, 0)], [INVALID_SIZE; 2]);
        ok(fill(list, 16));
    }
    ok(zeCommandListClose(regular));
    // Only what was accepted signals.
    ok(zeEventHostSynchronize(event, FOREVER));
    let other = setup.regular_list();
    ok(zeCommandListClose(other));
    let execute = |queue, list: Handle| zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut());
    let insert =
        |immediate, list: Handle| append!(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &raw const list));
    assert_eq!(execute(queue, other), INVALID_COMMAND_LIST_TYPE);
    assert_eq!(execute(setup.queue(2), regular), INVALID_COMMAND_LIST_TYPE);
    assert_eq!(insert(immediate, other), INVALID_COMMAND_LIST_TYPE);
    assert_eq!(insert(setup.immediate_list(2), regular), INVALID_COMMAND_LIST_TYPE);
    ok(execute(queue, regular));
    ok(insert(immediate, regular));
    ok(zeCommandQueueSynchronize(queue, FOREVER));
    ok(zeCommandListHostSynchronize(immediate, FOREVER));
    assert_eq!(bytes(memory, 64), pattern);
    let mut out = null_mut();
    for (ordinal, index) in [(0, 4), (1, 1), (2, 7), (3, 0)] {
        let desc = CommandQueueDesc { ordinal, index, ..zeroed() };
        let result = zeCommandListCreateImmediate(setup.context, setup.device, &raw const desc, &raw mut out);
        assert_eq!((result, out), (INVALID_ARGUMENT, null_mut()), "{ordinal} {index}");
    }
    let desc = CommandListDesc { command_queue_group_ordinal: 3, ..zeroed() };
    assert_eq!(zeCommandListCreate(setup.context, setup.device, &raw const desc, &raw mut out), INVALID_ARGUMENT);
}

/// A function that returns a number about a list.
type Query = fn(Handle, *mut u32) -> u32;

#[test]
fn queues_and_lists_say_what_they_were_created_with() {
    let setup = Setup::new();
    let value = |get: &dyn Fn(*mut u32) -> u32| {
        let mut value = 77;
        (get(&raw mut value), value)
    };
    let desc = CommandQueueDesc { index: 3, flags: 2, mode: 2, priority: 1, ..zeroed() };
    let queue = make(|out| zeCommandQueueCreate(setup.context, setup.device, &raw const desc, out));
    let immediate = make(|out| zeCommandListCreateImmediate(setup.context, setup.device, &raw const desc, out));
    let desc = CommandListDesc { flags: 4, ..zeroed() };
    let regular = make(|out| zeCommandListCreate(setup.context, setup.device, &raw const desc, out));
    assert_eq!(value(&|out| zeCommandQueueGetFlags(queue, out)), (SUCCESS, 2));
    assert_eq!(value(&|out| zeCommandQueueGetMode(queue, out)), (SUCCESS, 2));
    assert_eq!(value(&|out| zeCommandQueueGetPriority(queue, out)), (SUCCESS, 1));
    assert_eq!(value(&|out| zeCommandListGetFlags(regular, out)), (SUCCESS, 4));
    assert_eq!(value(&|out| zeCommandListGetFlags(immediate, out)), (INVALID_ARGUMENT, 77));
    let queries: [(Query, u32); 4] = [
        (zeCommandListImmediateGetFlags, 2),
        (zeCommandListImmediateGetMode, 2),
        (zeCommandListImmediateGetPriority, 1),
        (zeCommandListImmediateGetIndex, 3),
    ];
    for (query, expected) in queries {
        assert_eq!(value(&|out| query(immediate, out)), (SUCCESS, expected));
        assert_eq!(value(&|out| query(regular, out)), (INVALID_ARGUMENT, 77));
    }
    for desc in [CommandQueueDesc { priority: 3, ..zeroed() }, CommandQueueDesc { mode: 3, ..zeroed() }] {
        let mut out = null_mut();
        let result = zeCommandQueueCreate(setup.context, setup.device, &raw const desc, &raw mut out);
        assert_eq!((result, out), (INVALID_ENUMERATION, null_mut()));
    }
}
