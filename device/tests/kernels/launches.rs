//! The ways in which a kernel is launched, and its place among other commands.

use urscope_device::INTERFACE;

use crate::spirv::{Assembler, empty, increment, number, scale};
use crate::*;

const COUNT: usize = 100_000;

fn is_numbered(memory: *mut u32, count: usize) -> bool {
    at(memory, count).iter().enumerate().all(|(index, value)| *value == index as u32)
}

#[test]
fn a_kernel_runs_between_copies_and_fills() {
    let setup = setup();
    let kernel = kernel(module(setup, scale), "scale");
    let from = numbers(setup, COUNT);
    let to = numbers(setup, COUNT);
    let back = numbers(setup, COUNT);
    for list in [setup.immediate_list(0), setup.immediate_list(1)] {
        at(back, COUNT).fill(0);
        let seven = 7_u32;
        let pattern = (&raw const seven).cast();
        ok(append!(zeCommandListAppendMemoryFill(list, address(from), pattern, 4, COUNT * 4)));
        set(kernel, 0, &to);
        set(kernel, 1, &from);
        set(kernel, 2, &3_u32);
        launch(list, kernel, COUNT as u32 / 100, 100);
        // The launch has taken its arguments: these are for the next.
        set(kernel, 0, &from);
        set(kernel, 1, &to);
        set(kernel, 2, &0_u32);
        launch(list, kernel, COUNT as u32 / 100, 100);
        copy(list, address(back), address(to), COUNT * 4);
        ok(zeCommandListHostSynchronize(list, FOREVER));
        assert!(at(back, COUNT).iter().all(|value| *value == 22));
        assert!(at(from, COUNT).iter().all(|value| *value == 1));
    }
}

/// The engine may run it in other groups, of the same items.
#[test]
fn a_kernel_that_knows_nothing_of_groups_runs_all_items_once() {
    let setup = setup();
    let mut asm = Assembler::without_groups();
    number(&mut asm);
    increment(&mut asm);
    let module = module_of(setup, &asm.finish());
    let list = setup.immediate_list(0);
    let [number, increment] = ["number", "increment"].map(|name| kernel(module, name));
    for size in [1, 3, 8, 63, 64] {
        for (groups, offset) in [(1, 0), (2, 5), (1009, 0), (1009, 77)] {
            let memory = numbers(setup, COUNT);
            for kernel in [number, increment] {
                set(kernel, 0, &memory);
                ok(zeKernelSetGlobalOffsetExp(kernel, offset, 0, 0));
                launch(list, kernel, groups, size);
            }
            ok(zeCommandListHostSynchronize(list, FOREVER));
            let first = offset as usize;
            let count = (groups * size) as usize;
            let expected = |index| if (first..first + count).contains(&index) { index as u32 + 1 } else { 0 };
            assert!(at(memory, COUNT).iter().enumerate().all(|(index, value)| *value == expected(index)), "{size}");
            ok(zeMemFree(setup.context, address(memory)));
        }
    }
}

#[test]
fn a_closed_list_launches_each_time_it_is_executed() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let list = setup.regular_list();
    let queue = setup.queue(0);
    launch(list, kernel, 10, 16);
    ok(zeCommandListClose(list));
    ok(zeKernelDestroy(kernel));
    for _ in 0..2 {
        at(memory, COUNT).fill(0);
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut()));
        ok(zeCommandQueueSynchronize(queue, FOREVER));
        assert!(is_numbered(memory, 160));
    }
    at(memory, COUNT).fill(0);
    let immediate = setup.immediate_list(0);
    ok(append!(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &raw const list)));
    ok(zeCommandListHostSynchronize(immediate, FOREVER));
    assert!(is_numbered(memory, 160));
}

#[test]
fn a_launch_waits_for_events_and_signals_one() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let list = setup.immediate_list(0);
    let [gate, done] = setup.events();
    ok(zeKernelSetGroupSize(kernel, 8, 1, 1));
    ok(zeCommandListAppendLaunchKernel(list, kernel, &Extent { x: 2, y: 1, z: 1 }, done, 1, &raw const gate));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    assert_eq!(at(memory, 16)[15], 0);
    // Other tests of this process have memory of their own behind this one.
    let unfinished = || (INTERFACE.unfinished_from)(address(memory).addr()) < COUNT * 4;
    // Nothing is known while a lock is not free.
    assert!((0..1000).any(|_| unfinished()));
    assert!((INTERFACE.unfinished_from)(address(memory).addr() + 1) >= COUNT * 4 - 1);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert!(is_numbered(memory, 16));
    assert!(!unfinished());
}

#[test]
fn a_launch_with_arguments_brings_all_that_it_needs() {
    let setup = setup();
    let kernel = kernel(module(setup, scale), "scale");
    let from = numbers(setup, 64);
    let to = numbers(setup, 64);
    at(from, 64).fill(5);
    let factor = 2_u32;
    let list = setup.immediate_list(1);
    let arguments: [*const c_void; 3] = [(&raw const to).cast(), (&raw const from).cast(), (&raw const factor).cast()];
    let groups = Extent { x: 4, y: 1, z: 1 };
    let group = Extent { x: 16, y: 1, z: 1 };
    let append = |groups, group, next| {
        append!(zeCommandListAppendLaunchKernelWithArguments(list, kernel, groups, group, arguments.as_ptr(), next))
    };
    ok(append(groups, group, null()));
    assert_eq!(at(to, 64), [11; 64]);
    // They stay set, as the specification says.
    at(to, 64).fill(0);
    ok(append!(zeCommandListAppendLaunchKernelWithParameters(list, kernel, &raw const groups, null())));
    assert_eq!(at(to, 64), [11; 64]);
    assert_eq!(append(groups, Extent { x: 0, y: 1, z: 1 }, null()), INVALID_GROUP_SIZE_DIMENSION);
    assert_eq!(append(groups, Extent { x: 1025, y: 1, z: 1 }, null()), INVALID_GROUP_SIZE_DIMENSION);
    let cooperative = LaunchCooperativeDesc { s_type: LaunchCooperativeDesc::S_TYPE, is_cooperative: 1, ..zeroed() };
    let next = (&raw const cooperative).cast();
    assert_eq!(append(groups, group, next), INVALID_ARGUMENT);
    ok(append(Extent { x: 1, y: 1, z: 1 }, group, next));
}

#[test]
fn a_cooperative_launch_has_one_group() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let list = setup.immediate_list(1);
    let mut most = 0;
    ok(zeKernelSuggestMaxCooperativeGroupCount(kernel, &raw mut most));
    ok(zeKernelSetGroupSize(kernel, 32, 1, 1));
    let launch = |x| append!(zeCommandListAppendLaunchCooperativeKernel(list, kernel, &Extent { x, y: 1, z: 1 }));
    ok(launch(most));
    assert!(is_numbered(memory, 32));
    assert_eq!(launch(most + 1), INVALID_ARGUMENT);
}

#[test]
fn indirect_launches_read_their_numbers_when_they_run() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let list = setup.immediate_list(0);
    let [gate] = setup.events();
    let groups = numbers(setup, 16);
    ok(zeKernelSetGroupSize(kernel, 10, 1, 1));
    ok(zeCommandListAppendLaunchKernelIndirect(list, kernel, groups.cast(), null_mut(), 1, &raw const gate));
    at(groups, 3).copy_from_slice(&[5, 1, 1]);
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert!(is_numbered(memory, 50));
    assert_eq!(at(memory, 51)[50], 0);

    // Two of three run: one of 7 groups, one of none.
    at(memory, COUNT).fill(0);
    at(groups, 10).copy_from_slice(&[2, 7, 1, 1, 0, 1, 1, 9, 1, 1]);
    let count = groups;
    // SAFETY: the allocation has 16 numbers.
    let extents = unsafe { groups.add(1) };
    let kernels = [kernel; 3];
    ok(append!(zeCommandListAppendLaunchMultipleKernelsIndirect(list, 3, kernels.as_ptr(), count, extents.cast())));
    ok(zeCommandListHostSynchronize(list, FOREVER));
    assert!(is_numbered(memory, 70));
    assert_eq!(at(memory, 71)[70], 0);
}

#[test]
fn a_kernel_uses_memory_of_the_process() {
    let setup = setup();
    let kernel = kernel(module(setup, number), "number");
    let mut memory = vec![0_u32; COUNT];
    let pointer = memory.as_mut_ptr();
    set(kernel, 0, &pointer);
    launch(setup.immediate_list(1), kernel, COUNT as u32 / 100, 100);
    assert!(memory.iter().enumerate().all(|(index, value)| *value == index as u32));
}

#[test]
fn a_list_for_copies_takes_no_kernels() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let regular = setup.regular_list_of(CommandListDesc { command_queue_group_ordinal: 1, ..zeroed() });
    let immediate = setup.immediate_list_of(CommandQueueDesc { ordinal: 1, mode: 2, ..zeroed() });
    let [event] = setup.events();
    let groups = Extent { x: 1, y: 1, z: 1 };
    let group = Extent { x: 16, y: 1, z: 1 };
    let arguments = [(&raw const memory).cast::<c_void>()];
    let kernels = [kernel];
    let count = numbers(setup, 4);
    for list in [regular, immediate] {
        let arguments = arguments.as_ptr();
        let refused = [
            append!(zeCommandListAppendLaunchKernel(list, kernel, &raw const groups), event),
            append!(zeCommandListAppendLaunchCooperativeKernel(list, kernel, &raw const groups), event),
            append!(zeCommandListAppendLaunchKernelIndirect(list, kernel, count.cast()), event),
            append!(
                zeCommandListAppendLaunchMultipleKernelsIndirect(list, 1, kernels.as_ptr(), count, count.cast()),
                event
            ),
            append!(zeCommandListAppendLaunchKernelWithParameters(list, kernel, &raw const groups, null()), event),
            append!(
                zeCommandListAppendLaunchKernelWithArguments(list, kernel, groups, group, arguments, null()),
                event
            ),
        ];
        assert_eq!(refused, [INVALID_COMMAND_LIST_TYPE; 6]);
    }
    assert_eq!((zeEventQueryStatus(event), at(memory, 16)[15]), (NOT_READY, 0));
}

#[test]
fn offsets_and_three_dimensions_count() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, COUNT);
    let list = setup.immediate_list(1);
    ok(zeKernelSetGlobalOffsetExp(kernel, 100, 0, 0));
    launch(list, kernel, 2, 5);
    assert_eq!(at(memory, 100), [0; 100]);
    assert_eq!(at(memory, 111)[99..], [0, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 0]);
    ok(zeKernelSetGlobalOffsetExp(kernel, 0, 0, 0));
    ok(zeKernelSetGroupSize(kernel, 4, 4, 2));
    ok(append!(zeCommandListAppendLaunchKernel(list, kernel, &Extent { x: 3, y: 2, z: 2 })));
    assert!(is_numbered(memory, 12));
    let mut group = [0; 3];
    let [x, y, z] = &mut group;
    ok(zeKernelSuggestGroupSize(kernel, 1000, 6, 1, x, y, z));
    assert!(1000_u32.is_multiple_of(group[0]) && 6_u32.is_multiple_of(group[1]) && group[2] == 1, "{group:?}");
}

/// Work and memory of a stream stay behind nowhere, and all streams may launch the same kernel.
#[test]
fn many_launches_from_many_threads_leave_nothing_behind() {
    let setup = setup();
    alone!();
    let kernel = kernel(module(setup, empty), "empty") as usize;
    let round = || {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let list = setup.immediate_list(0);
                    for _ in 0..5000 {
                        launch(list, kernel as Handle, 1, 1);
                    }
                    ok(zeCommandListHostSynchronize(list, FOREVER));
                    ok(zeCommandListDestroy(list));
                });
            }
        });
        resident()
    };
    // The pools of the engine and of malloc grow at first, and a little later on. An event of the engine is larger than
    // 50 bytes.
    let resident: Vec<usize> = (0..10).map(|_| round()).collect();
    assert!(resident[9] < resident[3] + 50 * 120_000, "120,000 launches: {resident:?} bytes resident");
}

/// Memory of this process in use, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
