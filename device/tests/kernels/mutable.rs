//! Commands of mutable lists that change after they were appended.

use crate::spirv::{number, scale};
use crate::*;

const COUNT: usize = 1024;
const KERNEL_ARGUMENTS: u32 = 1;
const EVENTS: u32 = 0b11 << 4;
const KERNEL: u32 = 1 << 6;

fn mutable_list(setup: Setup) -> Handle {
    let mutable: [u64; 3] = [u64::from(stype::MUTABLE_COMMAND_LIST_EXP_DESC), 0, 0];
    setup.regular_list_of(CommandListDesc { p_next: mutable.as_ptr().cast_mut().cast(), ..zeroed() })
}

/// The identifier of the next command.
fn identify(list: Handle, flags: u32) -> (u32, u64) {
    let desc = MutableCommandIdDesc { flags, ..zeroed() };
    let mut id = 0;
    (zeCommandListGetNextCommandIdExp(list, &raw const desc, &raw mut id), id)
}

/// Applies a chain of changes.
fn update<T>(list: Handle, first: &T) -> u32 {
    let desc = MutableCommandsDesc { p_next: address(std::ptr::from_ref(first).cast_mut()), ..zeroed() };
    zeCommandListUpdateMutableCommandsExp(list, &raw const desc)
}

fn argument<T>(command_id: u64, arg_index: u32, value: &T) -> MutableKernelArgument {
    let s_type = MutableKernelArgument::S_TYPE;
    let value = std::ptr::from_ref(value).cast();
    MutableKernelArgument { s_type, p_next: null_mut(), command_id, arg_index, arg_size: size_of::<T>(), value }
}

fn execute(queue: Handle, list: Handle) -> u32 {
    let result = zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut());
    ok(zeCommandQueueSynchronize(queue, FOREVER));
    result
}

#[test]
fn the_device_says_what_can_be_changed() {
    let s_type = MutableCommandListProperties::S_TYPE;
    let mut mutable = MutableCommandListProperties { s_type, ..zeroed() };
    let mut properties = DeviceProperties { p_next: address(&raw mut mutable), ..zeroed() };
    ok(zeDeviceGetProperties(devices()[0], &raw mut properties));
    assert_eq!((mutable.list_flags, mutable.command_flags), (0, 0x7f));
    let extensions = all(|count, out| zeDriverGetExtensionProperties(driver(), count, out));
    // The adapters want exactly this version.
    let named = |found: &&DriverExtensionProperties| found.name.starts_with(b"ZE_experimental_mutable_command_list\0");
    assert_eq!(extensions.iter().find(named).map(|found| found.version), Some(1 << 16 | 1));
}

/// Arguments, sizes and offset in one chain for two commands. What the kernels are set to does not matter.
#[test]
fn a_launch_takes_what_it_was_changed_to() {
    let setup = setup();
    let queue = setup.queue(0);
    let list = mutable_list(setup);
    let scaling = kernel(module(setup, scale), "scale");
    let [first, second, third] = [(); 3].map(|()| numbers(setup, COUNT));
    let launched = |to: *mut u32, from: *mut u32, factor: u32| {
        let (result, id) = identify(list, 0);
        ok(result);
        set(scaling, 0, &to);
        set(scaling, 1, &from);
        set(scaling, 2, &factor);
        launch(list, scaling, COUNT as u32 / 64, 64);
        id
    };
    let ids = [launched(second, first, 2), launched(third, second, 3)];
    assert_ne!(ids[0], ids[1]);
    ok(zeCommandListClose(list));
    ok(execute(queue, list));
    assert!(at(third, COUNT).iter().all(|value| *value == 4));

    let groups = Extent { x: 4, y: 1, z: 1 };
    let ten = 10_u32;
    let mut changes = [argument(ids[1], 2, &ten), argument(ids[0], 0, &third), argument(ids[1], 1, &third)];
    let mut size =
        MutableGroupSize { s_type: MutableGroupSize::S_TYPE, p_next: null_mut(), command_id: ids[1], size: [16, 1, 1] };
    let mut count = MutableGroupCount {
        s_type: MutableGroupCount::S_TYPE,
        p_next: address(&raw mut size),
        command_id: ids[1],
        group_count: &raw const groups,
    };
    let mut offset = MutableGlobalOffset {
        s_type: MutableGlobalOffset::S_TYPE,
        p_next: address(&raw mut count),
        command_id: ids[1],
        offset: [100, 0, 0],
    };
    changes[2].p_next = address(&raw mut offset);
    changes[1].p_next = address(&raw mut changes[2]);
    changes[0].p_next = address(&raw mut changes[1]);
    ok(update(list, &changes[0]));
    // It must be closed again, and takes no other commands.
    assert_eq!(execute(queue, list), INVALID_ARGUMENT);
    assert_eq!(append!(zeCommandListAppendBarrier(list)), INVALID_ARGUMENT);
    ok(zeCommandListClose(list));
    at(third, COUNT).fill(0);
    ok(execute(queue, list));
    // The first launch writes 1 everywhere, the second one 11 in 64 places from the 100th on.
    let expected = |index: usize| if (100..164).contains(&index) { 11 } else { 1 };
    assert!(at(third, COUNT).iter().enumerate().all(|(index, value)| *value == expected(index)));
}

#[test]
fn a_launch_runs_another_kernel_of_those_that_were_named() {
    let setup = setup();
    let queue = setup.queue(0);
    let list = mutable_list(setup);
    let numbering = kernel(module(setup, number), "number");
    let scaling = kernel(module(setup, scale), "scale");
    let other = kernel(module(setup, number), "number");
    let [memory, ones] = [(); 2].map(|()| numbers(setup, COUNT));
    at(ones, COUNT).fill(1);
    let desc = MutableCommandIdDesc { flags: KERNEL | KERNEL_ARGUMENTS, ..zeroed() };
    let mut id = 0;
    let named = [numbering, scaling];
    ok(zeCommandListGetNextCommandIdWithKernelsExp(list, &raw const desc, 2, named.as_ptr(), &raw mut id));
    set(numbering, 0, &memory);
    launch(list, numbering, COUNT as u32 / 64, 64);
    ok(zeCommandListClose(list));
    ok(execute(queue, list));
    assert!(at(memory, COUNT).iter().enumerate().all(|(index, value)| *value == index as u32));

    let change =
        |kernel: Handle| zeCommandListUpdateMutableCommandKernelsExp(list, 1, &raw const id, &raw const kernel);
    assert_eq!(change(other), INVALID_KERNEL_HANDLE);
    ok(change(scaling));
    // Without its arguments it cannot run.
    assert_eq!(zeCommandListClose(list), INVALID_ARGUMENT);
    let factor = 7_u32;
    let mut changes = [argument(id, 0, &memory), argument(id, 1, &ones), argument(id, 2, &factor)];
    changes[1].p_next = address(&raw mut changes[2]);
    changes[0].p_next = address(&raw mut changes[1]);
    ok(update(list, &changes[0]));
    ok(zeCommandListClose(list));
    ok(execute(queue, list));
    assert!(at(memory, COUNT).iter().all(|value| *value == 8));
}

#[test]
fn a_command_waits_for_other_events_and_signals_another_one() {
    let setup = setup();
    let queue = setup.queue(0);
    let list = mutable_list(setup);
    let memory = numbers(setup, 16);
    let [first, second, gate, before, after] = setup.events();
    let (result, id) = identify(list, EVENTS);
    ok(result);
    let waits = [first, second];
    ok(zeCommandListAppendMemoryFill(list, address(memory), [1_u8].as_ptr().cast(), 1, 64, before, 2, waits.as_ptr()));
    ok(zeCommandListClose(list));
    let wait = |count, events: *const Handle| zeCommandListUpdateMutableCommandWaitEventsExp(list, id, count, events);
    assert_eq!(wait(1, waits.as_ptr()), INVALID_SIZE);
    let changed = [gate, null_mut()];
    ok(wait(2, changed.as_ptr()));
    // The number stays that of the append.
    ok(wait(2, changed.as_ptr()));
    ok(zeCommandListUpdateMutableCommandSignalEventExp(list, id, after));
    ok(zeCommandListClose(list));
    ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const list, null_mut()));
    assert_eq!(zeEventQueryStatus(after), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(after, FOREVER));
    assert_eq!((at(memory, 1)[0], zeEventQueryStatus(before)), (0x0101_0101, NOT_READY));
    // No events at all.
    ok(wait(0, null()));
    ok(zeCommandListUpdateMutableCommandSignalEventExp(list, id, null_mut()));
    ok(zeCommandListClose(list));
    ok(zeEventHostReset(after));
    ok(execute(queue, list));
    assert_eq!(zeEventQueryStatus(after), NOT_READY);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let setup = setup();
    let queue = setup.queue(0);
    let list = mutable_list(setup);
    let ordinary = setup.regular_list();
    let numbering = kernel(module(setup, number), "number");
    let [memory, other] = [(); 2].map(|()| numbers(setup, COUNT));
    for (list, expected) in [(list, 1), (ordinary, 0), (setup.immediate_list(0), 0)] {
        let mut mutable = 9;
        ok(zeCommandListIsMutableExp(list, &raw mut mutable));
        assert_eq!(mutable, expected);
    }
    assert_eq!(identify(ordinary, 0), (INVALID_ARGUMENT, 0));
    assert_eq!(identify(list, 0x100), (INVALID_ENUMERATION, 0));
    assert_eq!(identify(list, 0x80), (UNSUPPORTED_ENUMERATION, 0));
    let (result, barrier) = identify(list, 0);
    ok(result);
    ok(append!(zeCommandListAppendBarrier(list)));
    let (result, id) = identify(list, KERNEL_ARGUMENTS);
    ok(result);
    set(numbering, 0, &memory);
    launch(list, numbering, COUNT as u32 / 64, 64);
    ok(zeCommandListClose(list));
    assert_eq!(identify(list, 0), (INVALID_ARGUMENT, 0));
    let mut right = argument(id, 0, &other);
    let size =
        MutableGroupSize { s_type: MutableGroupSize::S_TYPE, p_next: null_mut(), command_id: id, size: [16, 1, 1] };
    let mut wrong =
        [argument(barrier, 0, &other), argument(77, 0, &other), argument(id, 1, &other), argument(id, 0, &1_u16)];
    for change in &mut wrong {
        right.p_next = address(change);
        assert_eq!(update(list, &right), INVALID_ARGUMENT);
    }
    // It was not to be changed in that.
    assert_eq!(update(list, &size), INVALID_ARGUMENT);
    assert_eq!(zeCommandListUpdateMutableCommandSignalEventExp(list, id, null_mut()), INVALID_ARGUMENT);
    // So it is still closed, and as it was.
    ok(execute(queue, list));
    assert_eq!((at(memory, COUNT)[COUNT - 1], at(other, COUNT)[COUNT - 1]), (COUNT as u32 - 1, 0));
}
