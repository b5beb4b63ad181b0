//! Graphs that are captured from immediate lists: what is recorded and does not run, forks and joins, executions, and
//! what is refused.

use crate::api::*;
use crate::lists::gated;

pub(super) const SIZE: usize = 4096;
/// A flag of counter-based events: signals in graphs are seen outside.
const EXTERNAL: u32 = 1 << 6;

pub(super) fn begin(list: Handle) {
    ok(zeCommandListBeginGraphCaptureExt(list, null()));
}

pub(super) fn end(list: Handle) -> Handle {
    make(|graph| zeCommandListEndGraphCaptureExt(list, null(), graph))
}

pub(super) fn instantiate(graph: Handle) -> Handle {
    make(|executable| zeGraphInstantiateExt(graph, null(), executable))
}

/// Executes a graph, and waits for the list.
pub(super) fn execute(list: Handle, executable: Handle) {
    ok(append!(zeCommandListAppendGraphExt(list, executable, null())));
    ok(zeCommandListHostSynchronize(list, FOREVER));
}

pub(super) fn fill(list: Handle, to: *mut c_void, value: u8, signal: Handle, waits: &[Handle]) -> u32 {
    let waits = (waits.len() as u32, waits.as_ptr());
    zeCommandListAppendMemoryFill(list, to, (&raw const value).cast(), 1, SIZE, signal, waits.0, waits.1)
}

fn copy_after(list: Handle, to: *mut c_void, from: *const c_void, signal: Handle, waits: &[Handle]) -> u32 {
    zeCommandListAppendMemoryCopy(list, to, from, SIZE, signal, waits.len() as u32, waits.as_ptr())
}

pub(super) fn wait_for(list: Handle, event: Handle) -> u32 {
    zeCommandListAppendWaitOnEvents(list, 1, &raw const event)
}

fn is_all(memory: *const c_void, value: u8) -> bool {
    bytes(memory, SIZE).iter().all(|byte| *byte == value)
}

#[test]
fn a_capture_runs_nothing_and_its_graph_runs_each_time_it_is_appended() {
    let setup = Setup::new();
    let list = setup.immediate_list(2);
    let other = setup.immediate_list(2);
    let from = setup.device_memory(SIZE);
    let to = setup.device_memory(SIZE);
    let [flag] = setup.events();
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(list), QUERY_FALSE);
    begin(list);
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(list), QUERY_TRUE);
    ok(copy_after(list, to, from, flag, &[]));
    let recording = make(|graph| zeCommandListGetGraphExt(list, graph));
    let graph = end(list);
    assert_eq!(recording, graph);
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(list), QUERY_FALSE);
    assert_eq!(make(|primary| zeGraphGetPrimaryCommandListExt(graph, primary)), list);
    assert_eq!(zeGraphIsEmptyExt(graph), QUERY_FALSE);
    // What is appended now runs as ever, and what was recorded has not run.
    ok(fill(list, from, 1, null_mut(), &[]));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert!(is_all(to, 0));
    assert_eq!(zeEventQueryStatus(flag), NOT_READY);

    let executable = instantiate(graph);
    assert_eq!(make(|source| zeExecutableGraphGetSourceGraphExt(executable, source)), graph);
    for value in 2..6 {
        bytes(from, SIZE).fill(value);
        execute(if value % 2 == 0 { list } else { other }, executable);
        assert!(is_all(to, value));
        ok(zeEventQueryStatus(flag));
        ok(zeEventHostReset(flag));
    }
    // An execution waits for events before its first command, and signals after its last.
    let gate = setup.events::<1>()[0];
    let done = setup.counter_event();
    bytes(from, SIZE).fill(9);
    ok(zeCommandListAppendGraphExt(list, executable, null(), done, 1, &raw const gate));
    assert_eq!(zeEventHostSynchronize(done, nanoseconds(Duration::from_millis(20))), NOT_READY);
    assert!(is_all(to, 5));
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert!(is_all(to, 9));
    ok(zeExecutableGraphDestroyExt(executable));
    ok(zeGraphDestroyExt(graph));
    assert_eq!(zeGraphIsEmptyExt(graph), INVALID_ARGUMENT);
}

/// One list fills, a second one copies what the first has filled, and the first copies that.
#[test]
fn a_list_that_waits_for_a_recorded_event_takes_part_until_the_end() {
    let setup = Setup::new();
    for counters in [false, true] {
        let parent = setup.immediate_list(2);
        let child = setup.immediate_list(2);
        let [fork, join] = if counters { [setup.counter_event(), setup.counter_event()] } else { setup.events() };
        let memory: [_; 4] = std::array::from_fn(|_| setup.device_memory(SIZE));
        let [input, first, second, third] = memory;
        begin(parent);
        ok(copy_after(parent, first, input, fork, &[]));
        assert_eq!(zeCommandListIsGraphCaptureEnabledExt(child), QUERY_FALSE);
        ok(copy_after(child, second, first, join, &[fork]));
        assert_eq!(zeCommandListIsGraphCaptureEnabledExt(child), QUERY_TRUE);
        let graphs = [parent, child].map(|list| make(|graph| zeCommandListGetGraphExt(list, graph)));
        assert_eq!(graphs[0], graphs[1]);
        ok(copy_after(parent, third, second, null_mut(), &[join]));
        let graph = end(parent);
        assert_eq!(zeCommandListIsGraphCaptureEnabledExt(child), QUERY_FALSE);
        // The events fork nothing any more.
        ok(fill(child, input, 0, null_mut(), &[]));
        ok(zeCommandListHostSynchronize(child, FOREVER));
        let executables = [instantiate(graph), instantiate(graph)];
        for (value, list) in (1..20).zip([parent, child].into_iter().cycle()) {
            bytes(input, SIZE).fill(value);
            execute(list, executables[usize::from(value) % 2]);
            assert!(is_all(third, value), "{counters} {value}");
        }
    }
}

#[test]
fn every_fork_must_be_joined_by_its_parent_after_its_last_work() {
    let setup = Setup::new();
    let memory = setup.device_memory(SIZE);
    let lists = || [setup.immediate_list(2), setup.immediate_list(2), setup.immediate_list(2)];
    let ends = |case: &dyn Fn([Handle; 3], [Handle; 4])| {
        let lists = lists();
        let events = std::array::from_fn(|_| setup.counter_event());
        begin(lists[0]);
        ok(zeCommandListAppendSignalEvent(lists[0], events[0]));
        ok(wait_for(lists[1], events[0]));
        case(lists, events);
        let mut graph = null_mut();
        let result = zeCommandListEndGraphCaptureExt(lists[0], null(), &raw mut graph);
        for list in lists {
            assert_eq!(zeCommandListIsGraphCaptureEnabledExt(list), QUERY_FALSE);
        }
        let instantiated = zeGraphInstantiateExt(graph, null(), &mut null_mut());
        assert_eq!(instantiated, if result == SUCCESS { SUCCESS } else { INVALID_GRAPH });
        assert_eq!(zeGraphIsEmptyExt(graph), if result == SUCCESS { QUERY_FALSE } else { INVALID_GRAPH });
        ok(zeGraphDestroyExt(graph));
        result
    };
    assert_eq!(ends(&|_, _| ()), GRAPH_UNJOINED_FORKS);
    let joined = |[parent, child, _]: [Handle; 3], [_, join, ..]: [Handle; 4]| {
        ok(fill(child, memory, 1, join, &[]));
        ok(wait_for(parent, join));
    };
    assert_eq!(ends(&joined), SUCCESS);
    // Signals, waits and barriers may follow.
    let barrier = |lists: [Handle; 3], events: [Handle; 4]| {
        joined(lists, events);
        ok(zeCommandListAppendBarrier(lists[1], events[2], 0, null()));
    };
    assert_eq!(ends(&barrier), SUCCESS);
    let work = |lists: [Handle; 3], events: [Handle; 4]| {
        joined(lists, events);
        ok(fill(lists[1], memory, 2, events[2], &[]));
    };
    assert_eq!(ends(&work), GRAPH_UNJOINED_FORKS);
    let joined_again = |lists: [Handle; 3], events: [Handle; 4]| {
        work(lists, events);
        ok(wait_for(lists[0], events[2]));
    };
    assert_eq!(ends(&joined_again), SUCCESS);
    // A third list is joined by the one that it was forked from, not by another.
    let third = |[_, child, third]: [Handle; 3], events: [Handle; 4]| {
        ok(zeCommandListAppendSignalEvent(child, events[2]));
        ok(fill(third, memory, 3, events[3], &[events[2]]));
    };
    let by_another = |lists: [Handle; 3], events: [Handle; 4]| {
        third(lists, events);
        ok(wait_for(lists[0], events[3]));
        joined(lists, events);
    };
    assert_eq!(ends(&by_another), GRAPH_UNJOINED_FORKS);
    let by_its_parent = |lists: [Handle; 3], events: [Handle; 4]| {
        third(lists, events);
        ok(wait_for(lists[1], events[3]));
        joined(lists, events);
    };
    assert_eq!(ends(&by_its_parent), SUCCESS);
}

#[test]
fn waits_of_the_host_are_refused_while_a_capture_lasts() {
    let (setup, list) = Setup::with_list(2);
    let [flag] = setup.events();
    let counter = setup.counter_event();
    ok(zeEventQueryStatus(counter));
    begin(list);
    ok(zeCommandListAppendSignalEvent(list, flag));
    ok(zeCommandListAppendSignalEvent(list, counter));
    assert_eq!(zeCommandListHostSynchronize(list, 0), GRAPH_CAPTURE_UNSUPPORTED);
    assert_eq!(zeCommandListReset(list), GRAPH_CAPTURE_UNSUPPORTED);
    for event in [flag, counter] {
        assert_eq!(zeEventHostSynchronize(event, 0), GRAPH_CAPTURE_UNSUPPORTED);
        assert_eq!(zeEventQueryStatus(event), NOT_READY);
    }
    end(list);
    ok(zeCommandListHostSynchronize(list, 0));
    ok(zeCommandListReset(list));
    assert_eq!(zeEventHostSynchronize(flag, 0), NOT_READY);
    ok(zeEventHostSynchronize(counter, 0));
}

#[test]
fn events_of_a_capture_are_refused_elsewhere() {
    let setup = Setup::new();
    let [list, second, other] = std::array::from_fn(|_| setup.immediate_list(2));
    let synchronous = setup.immediate_list(1);
    let regular = setup.regular_list();
    let [flag] = setup.events();
    let counter = setup.counter_event();
    let external = setup.counter_event_with(0b111 | EXTERNAL);
    let of_second = setup.counter_event();
    let memory = setup.device_memory(SIZE);
    begin(list);
    begin(second);
    for event in [flag, counter, external] {
        ok(zeCommandListAppendSignalEvent(list, event));
    }
    ok(zeCommandListAppendSignalEvent(second, of_second));
    for event in [flag, counter, external] {
        assert_eq!(wait_for(second, event), GRAPH_CAPTURE_MERGE_ATTEMPT);
        assert_eq!(fill(other, memory, 1, null_mut(), &[of_second, event]), GRAPH_CAPTURE_MERGE_ATTEMPT);
        assert_eq!(wait_for(synchronous, event), INVALID_COMMAND_LIST_TYPE);
        assert_eq!(wait_for(regular, event), INVALID_COMMAND_LIST_TYPE);
    }
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(other), QUERY_FALSE);
    for elsewhere in [second, other, regular, synchronous] {
        assert_eq!(zeCommandListAppendSignalEvent(elsewhere, counter), GRAPH_INTERNAL_EVENT);
    }
    // These have a state outside of the graph.
    ok(zeCommandListAppendSignalEvent(synchronous, flag));
    ok(zeCommandListAppendSignalEvent(synchronous, external));
    // What was refused was not recorded: nothing was forked.
    let graphs = [end(list), end(second)];
    assert_eq!(graphs.map(zeGraphIsEmptyExt), [QUERY_FALSE; 2]);
    ok(zeCommandListAppendSignalEvent(synchronous, counter));
    ok(wait_for(synchronous, of_second));
}

#[test]
fn captures_and_graphs_are_refused_at_the_wrong_time() {
    let setup = Setup::new();
    let [list, child] = std::array::from_fn(|_| setup.immediate_list(2));
    let synchronous = setup.immediate_list(1);
    let regular = setup.regular_list();
    let event = setup.counter_event();
    let graph = make(|graph| zeGraphCreateExt(setup.context, null(), graph));
    let mut out = null_mut();
    for wrong in [synchronous, regular] {
        assert_eq!(zeCommandListBeginGraphCaptureExt(wrong, null()), INVALID_ARGUMENT);
        assert_eq!(zeCommandListBeginCaptureIntoGraphExt(wrong, graph, null()), INVALID_ARGUMENT);
    }
    assert_eq!(zeCommandListBeginGraphCaptureExt(null_mut(), null()), INVALID_NULL_HANDLE);
    assert_eq!(zeCommandListBeginCaptureIntoGraphExt(list, null_mut(), null()), INVALID_NULL_HANDLE);
    assert_eq!(zeCommandListEndGraphCaptureExt(list, null(), &raw mut out), COMMAND_LIST_NOT_CAPTURING);
    out = list;
    assert_eq!(zeCommandListGetGraphExt(list, &raw mut out), COMMAND_LIST_NOT_CAPTURING);
    assert!(out.is_null());
    assert_eq!(zeGraphInstantiateExt(graph, null(), &raw mut out), INVALID_ARGUMENT);
    assert_eq!(zeGraphGetPrimaryCommandListExt(graph, &raw mut out), INVALID_ARGUMENT);
    assert_eq!(zeGraphIsEmptyExt(graph), QUERY_TRUE);

    ok(zeCommandListBeginCaptureIntoGraphExt(list, graph, null()));
    assert_eq!(zeCommandListBeginGraphCaptureExt(list, null()), INVALID_ARGUMENT);
    assert_eq!(zeCommandListBeginCaptureIntoGraphExt(child, graph, null()), INVALID_ARGUMENT);
    assert_eq!(zeGraphInstantiateExt(graph, null(), &raw mut out), INVALID_ARGUMENT);
    ok(zeCommandListAppendSignalEvent(list, event));
    ok(zeCommandListAppendBarrier(child, event, 1, &raw const event));
    ok(wait_for(list, event));
    assert_eq!(zeCommandListBeginGraphCaptureExt(child, null()), INVALID_ARGUMENT);
    assert_eq!(zeCommandListEndGraphCaptureExt(child, null(), &raw mut out), INVALID_ARGUMENT);
    assert_eq!(zeCommandListEndGraphCaptureExt(list, null(), null_mut()), INVALID_NULL_POINTER);
    assert_eq!(end(list), graph);
    // It is not empty any more.
    assert_eq!(zeCommandListBeginCaptureIntoGraphExt(list, graph, null()), INVALID_ARGUMENT);

    let executable = instantiate(graph);
    let copies = setup.immediate_list_of(CommandQueueDesc { ordinal: 1, mode: 2, ..zeroed() });
    for wrong in [synchronous, regular, copies] {
        let appended = append!(zeCommandListAppendGraphExt(wrong, executable, null()));
        assert_eq!(appended, INVALID_COMMAND_LIST_TYPE);
    }
    assert_eq!(zeCommandListAppendGraphExt(list, executable, null(), null_mut(), 1, null()), INVALID_SIZE);
    let extension = [0_u64; 2];
    let extension = (&raw const extension).cast();
    assert_eq!(append!(zeCommandListAppendGraphExt(list, executable, extension)), UNSUPPORTED_FEATURE);
    assert_eq!(zeGraphInstantiateExt(graph, extension, &raw mut out), UNSUPPORTED_FEATURE);
    ok(zeGraphDestroyExt(graph));
    assert_eq!(zeExecutableGraphGetSourceGraphExt(executable, &raw mut out), INVALID_ARGUMENT);
    // The copy outlives its source.
    execute(list, executable);
    ok(zeExecutableGraphDestroyExt(executable));
    assert_eq!(zeExecutableGraphDestroyExt(executable), INVALID_ARGUMENT);
}

#[test]
fn a_capture_ends_with_its_graph_and_with_its_first_list() {
    let setup = Setup::new();
    let [list, other] = std::array::from_fn(|_| setup.immediate_list(2));
    let event = setup.counter_event();
    let graph = make(|graph| zeGraphCreateExt(setup.context, null(), graph));
    ok(zeCommandListBeginCaptureIntoGraphExt(list, graph, null()));
    ok(zeCommandListAppendSignalEvent(list, event));
    ok(zeGraphDestroyExt(graph));
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(list), QUERY_FALSE);
    ok(zeCommandListHostSynchronize(list, FOREVER));
    ok(zeEventHostSynchronize(event, 0));

    begin(list);
    ok(zeCommandListAppendSignalEvent(list, event));
    ok(wait_for(other, event));
    let graph = make(|graph| zeCommandListGetGraphExt(list, graph));
    ok(zeCommandListDestroy(list));
    assert_eq!(zeCommandListIsGraphCaptureEnabledExt(other), QUERY_FALSE);
    ok(zeCommandListHostSynchronize(other, FOREVER));
    // The application never got this one.
    assert_eq!(zeGraphDestroyExt(graph), INVALID_ARGUMENT);
}

/// Adapters use an event of a command that was captured for another command, once the capture has ended.
#[test]
fn counters_of_a_graph_are_other_ones_in_each_copy() {
    let setup = Setup::new();
    let [list, child, busy] = std::array::from_fn(|_| setup.immediate_list(2));
    let input = setup.device_memory(SIZE);
    let middle = setup.device_memory(SIZE);
    let output = setup.device_memory(SIZE);
    let fork = setup.counter_event();
    let join = setup.counter_event();
    let older = setup.counter_event();
    ok(zeCommandListAppendSignalEvent(busy, older));
    begin(list);
    ok(copy_after(list, middle, input, fork, &[older]));
    ok(copy_after(child, output, middle, join, &[fork]));
    ok(wait_for(list, join));
    let executable = instantiate(end(list));
    let gate = gated(setup, busy);
    for event in [fork, join, older] {
        ok(zeCommandListAppendSignalEvent(busy, event));
    }
    bytes(input, SIZE).fill(3);
    execute(list, executable);
    assert!(is_all(output, 3));
    // The graph has not signalled them.
    for event in [fork, join, older] {
        assert_eq!(zeEventQueryStatus(event), NOT_READY);
    }
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(busy, FOREVER));
}

#[test]
fn an_external_counter_is_seen_outside() {
    let setup = Setup::new();
    let [list, outside] = std::array::from_fn(|_| setup.immediate_list(2));
    // Also one that is shared with other processes.
    for flags in [0b111 | EXTERNAL, 0b1111 | EXTERNAL] {
        let before = setup.counter_event_with(flags);
        let after = setup.counter_event_with(flags);
        let from = setup.device_memory(SIZE);
        let to = setup.device_memory(SIZE);
        begin(list);
        ok(copy_after(list, to, from, after, &[before]));
        let executable = instantiate(end(list));
        for value in 1..4 {
            let gate = gated(setup, outside);
            ok(fill(outside, from, value, before, &[]));
            ok(append!(zeCommandListAppendGraphExt(list, executable, null())));
            assert_eq!(zeEventQueryStatus(after), NOT_READY);
            ok(zeEventHostSignal(gate));
            ok(zeEventHostSynchronize(after, FOREVER));
            assert!(is_all(to, value));
        }
    }
}

#[test]
fn executions_of_the_same_graph_follow_one_another() {
    let setup = Setup::new();
    // The lists have engines of their own.
    let [first, second] = [0, 1].map(|index| setup.immediate_list_of(CommandQueueDesc { index, mode: 2, ..zeroed() }));
    let [gate] = setup.events();
    let from = setup.device_memory(SIZE);
    let to = setup.device_memory(SIZE);
    begin(first);
    ok(copy_after(first, to, from, null_mut(), &[]));
    let graph = end(first);
    let [executable, other] = [instantiate(graph), instantiate(graph)];
    let one = setup.counter_event();
    let two = setup.counter_event();
    ok(zeCommandListAppendGraphExt(first, executable, null(), one, 1, &raw const gate));
    // Another copy need not wait.
    execute(second, other);
    ok(zeCommandListAppendGraphExt(second, executable, null(), two, 0, null()));
    assert_eq!(zeEventHostSynchronize(two, nanoseconds(Duration::from_millis(20))), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(two, FOREVER));
    ok(zeEventQueryStatus(one));
}

#[test]
fn lists_and_graphs_are_recorded_in_graphs() {
    let setup = Setup::new();
    let list = setup.immediate_list(2);
    let regular = setup.regular_list();
    let memory: [_; 4] = std::array::from_fn(|_| setup.device_memory(SIZE));
    ok(copy_after(regular, memory[1], memory[0], null_mut(), &[]));
    ok(zeCommandListClose(regular));
    let [first, second] = [setup.counter_event(), setup.counter_event()];
    begin(list);
    ok(copy_after(list, memory[2], memory[1], first, &[]));
    ok(wait_for(list, first));
    let inner = instantiate(end(list));
    begin(list);
    ok(zeCommandListImmediateAppendCommandListsExp(list, 1, &raw const regular, first, 0, null()));
    ok(zeCommandListAppendGraphExt(list, inner, null(), second, 1, &raw const first));
    ok(copy_after(list, memory[3], memory[2], null_mut(), &[second]));
    let outer = instantiate(end(list));
    assert!(is_all(memory[3], 0));
    for value in 1..5 {
        bytes(memory[0], SIZE).fill(value);
        execute(list, outer);
        assert!(is_all(memory[3], value));
        bytes(memory[1], SIZE).fill(value + 100);
        execute(list, inner);
        assert!(is_all(memory[2], value + 100));
    }
}

/// Captures of several threads at the same time do not disturb each other, and leave nothing behind.
#[test]
fn threads_capture_at_the_same_time() {
    let setup = Setup::new();
    std::thread::scope(|scope| {
        for thread in 1..=4_u8 {
            scope.spawn(move || {
                let [list, child] = std::array::from_fn(|_| setup.immediate_list(2));
                let [fork, join] = [setup.counter_event(), setup.counter_event()];
                let [from, to] = [setup.device_memory(SIZE), setup.device_memory(SIZE)];
                for round in 0..20 {
                    begin(list);
                    ok(fill(list, from, thread + round, fork, &[]));
                    ok(copy_after(child, to, from, join, &[fork]));
                    ok(wait_for(list, join));
                    let graph = end(list);
                    let executable = instantiate(graph);
                    execute(list, executable);
                    assert!(is_all(to, thread + round));
                    ok(zeExecutableGraphDestroyExt(executable));
                    ok(zeGraphDestroyExt(graph));
                }
            });
        }
    });
}
