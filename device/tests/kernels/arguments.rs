//! Arguments of kernels.

use crate::spirv::scale;
use crate::*;

/// `keep(out, small, large, structure)`: stores the parts of values of 4 and 8 bytes and of a structure.
fn keep(asm: &mut Assembler) {
    let types = asm.types;
    let structure = asm.id();
    let pointer = asm.id();
    let one = asm.number(1);
    // The first member is 8 bytes, the second 4, and the size 16.
    asm.declare(30, &[structure, types.long, types.uint]);
    asm.declare(32, &[pointer, 7, structure]);
    let part = asm.id();
    asm.declare(32, &[part, 7, types.uint]);
    let parameters = [types.global, types.uint, types.long, pointer];
    asm.kernel("keep", &parameters, |asm, given, item| {
        let next = |asm: &mut Assembler, index: u32, value: u32| {
            let index = asm.number(index);
            let index = asm.gives(113, types.long, &[index]);
            let index = asm.gives(128, types.long, &[item, index]);
            let place = asm.place(types.global, given[0], index);
            asm.store(place, value);
        };
        next(asm, 0, given[1]);
        let low = asm.gives(113, types.uint, &[given[2]]);
        next(asm, 1, low);
        let member = asm.gives(66, part, &[given[3], one]);
        let value = asm.load(member);
        next(asm, 2, value);
    });
    // The last parameter is passed by value: FuncParamAttr ByVal.
    let last = asm.last_parameter();
    asm.decorate(&[last, 38, 2]);
}

#[repr(C)]
struct Pair {
    first: u64,
    second: u32,
}

#[test]
fn values_of_all_sizes_arrive() {
    let setup = setup();
    let kernel = kernel(module(setup, keep), "keep");
    let list = setup.immediate_list(1);
    let out = numbers(setup, 4);
    set(kernel, 0, &out);
    set(kernel, 1, &11_u32);
    set(kernel, 2, &12_u64);
    set(kernel, 3, &Pair { first: 1, second: 13 });
    launch(list, kernel, 1, 1);
    assert_eq!(at(out, 4), [11, 12, 13, 0]);
    // The v1 adapter passes no pointer for an 8-byte value that is 0.
    ok(zeKernelSetArgumentValue(kernel, 2, 8, null()));
    launch(list, kernel, 1, 1);
    assert_eq!(at(out, 4), [11, 0, 13, 0]);
    // oneMKL passes 8 bytes for a number of 4. Intel's driver takes the first ones.
    set(kernel, 1, &(u64::from(u32::MAX) << 32 | 0b1110));
    launch(list, kernel, 1, 1);
    assert_eq!(at(out, 4), [14, 0, 13, 0]);
    // Level Zero's conformance tests pass 4 bytes for a number of 8. Intel's driver takes the rest as 0.
    set(kernel, 2, &15_u32);
    launch(list, kernel, 1, 1);
    assert_eq!(at(out, 4), [14, 15, 13, 0]);
}

#[test]
fn what_is_no_argument_of_the_kernel_is_refused() {
    let setup = setup();
    let kernel = kernel(module(setup, scale), "scale");
    let list = setup.immediate_list(1);
    let groups = Extent { x: 1, y: 1, z: 1 };
    let append = || append!(zeCommandListAppendLaunchKernel(list, kernel, &raw const groups));
    assert_eq!(append(), INVALID_ARGUMENT, "no argument is set");
    let value = 0_u64;
    let value = (&raw const value).cast();
    assert_eq!(zeKernelSetArgumentValue(kernel, 3, 4, value), INVALID_KERNEL_ARGUMENT_INDEX);
    assert_eq!(zeKernelSetArgumentValue(kernel, 0, 4, value), INVALID_KERNEL_ARGUMENT_SIZE);
    assert_eq!(zeKernelSetGroupSize(kernel, 0, 1, 1), INVALID_GROUP_SIZE_DIMENSION);
    assert_eq!(zeKernelSetGroupSize(kernel, 1024, 2, 1), INVALID_GROUP_SIZE_DIMENSION);
}

/// `turn(numbers, local)`: turns the numbers of each group round, through local memory.
fn turn(asm: &mut Assembler) {
    let types = asm.types;
    let workgroup = asm.number(2);
    let order = asm.number(0x110);
    let last = asm.id();
    asm.declare(43, &[types.long, last, 15, 0]);
    asm.kernel("turn", &[types.global, types.local], |asm, given, item| {
        let own = asm.place(types.global, given[0], item);
        let value = asm.load(own);
        let local = asm.local_item();
        let to = asm.place(types.local, given[1], local);
        asm.store(to, value);
        asm.does(224, &[workgroup, workgroup, order]);
        let opposite = asm.gives(130, types.long, &[last, local]);
        let from = asm.place(types.local, given[1], opposite);
        let value = asm.load(from);
        asm.store(own, value);
    });
}

#[test]
fn local_memory_is_that_of_the_group() {
    let setup = setup();
    let kernel = kernel(module(setup, turn), "turn");
    let list = setup.immediate_list(1);
    let memory = numbers(setup, 320);
    let expected: Vec<u32> = (0..320).map(|index| index / 16 * 16 + 15 - index % 16).collect();
    (0..320).for_each(|index| at(memory, 320)[index] = index as u32);
    set(kernel, 0, &memory);
    ok(zeKernelSetArgumentValue(kernel, 1, 64, null()));
    launch(list, kernel, 20, 16);
    assert_eq!(at(memory, 320), expected);
    // With the other call, a pointer to the size.
    let size = 64_usize;
    let groups = Extent { x: 20, y: 1, z: 1 };
    let group = Extent { x: 16, y: 1, z: 1 };
    let arguments: [*const c_void; 2] = [(&raw const memory).cast(), (&raw const size).cast()];
    ok(append!(zeCommandListAppendLaunchKernelWithArguments(list, kernel, groups, group, arguments.as_ptr(), null())));
    assert!(at(memory, 320).iter().enumerate().all(|(index, value)| *value == index as u32));
}

/// Memory that is freed while a launch waits for its turn stays until that has ended.
#[test]
fn memory_of_a_launch_is_kept_until_it_has_ended() {
    let setup = setup();
    let (kernel, memory) = numbering(setup, 1 << 20);
    let list = setup.immediate_list(0);
    let [gate] = setup.events();
    ok(zeCommandListAppendWaitOnEvents(list, 1, &raw const gate));
    launch(list, kernel, 1024, 1024);
    setup.free(address(memory));
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(list, FOREVER));
}
