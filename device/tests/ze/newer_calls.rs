//! Newer calls of command lists: host functions, and copies and fills with parameters.

use crate::api::*;
use crate::lists::gated;

const SIZE: usize = 100_003;

/// Adds what the device sees at its first word to the second one.
extern "C" fn add(data: *mut c_void) {
    // SAFETY: the tests pass two words, and nobody else uses them until the command has completed.
    let words = unsafe { &mut *data.cast::<[u64; 2]>() };
    words[1] += words[0];
}

#[test]
fn a_host_function_runs_in_its_place_in_every_kind_of_list() {
    let setup = Setup::new();
    let immediate = setup.immediate_list(2);
    let regular = setup.regular_list();
    let queue = setup.queue(2);
    let memory = setup.device_memory(16);
    let [done] = setup.events();
    let append = |list: Handle, signal: Handle, waits: &[Handle]| {
        for word in [3_u64, 4] {
            let pattern = (&raw const word).cast();
            ok(append!(zeCommandListAppendMemoryFill(list, memory, pattern, 8, 8)));
            let waits = (waits.len() as u32, waits.as_ptr());
            ok(zeCommandListAppendHostFunction(list, Some(add), memory, null(), signal, waits.0, waits.1));
        }
    };
    let gate = gated(setup, immediate);
    append(immediate, done, &[gate]);
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeCommandListHostSynchronize(immediate, FOREVER));
    ok(zeEventQueryStatus(done));
    append(regular, null_mut(), &[]);
    ok(zeCommandListClose(regular));
    for _ in 0..2 {
        ok(zeCommandQueueExecuteCommandLists(queue, 1, &raw const regular, null_mut()));
    }
    ok(zeCommandQueueSynchronize(queue, FOREVER));
    let mut words = [0_u64; 2];
    copy(immediate, (&raw mut words).cast(), memory, 16);
    ok(zeCommandListHostSynchronize(immediate, FOREVER));
    assert_eq!(words, [4, 21]);
    let refused = append!(zeCommandListAppendHostFunction(immediate, None, memory, null()));
    assert_eq!(refused, INVALID_ARGUMENT);
}

#[test]
fn calls_with_parameters_do_the_same_without_extensions_and_refuse_them() {
    let setup = Setup::new();
    let immediate = setup.immediate_list(1);
    let regular = setup.regular_list();
    let to = setup.device_memory(SIZE);
    let from = setup.device_memory(SIZE);
    let extension = [0_u64; 2];
    let byte = (&raw const extension).cast();
    let seven = [7_u8];
    let cases = [(byte, UNSUPPORTED_FEATURE), (null(), 0)];
    let pattern = seven.as_ptr().cast();
    for (extensions, expected) in cases {
        let filled =
            append!(zeCommandListAppendMemoryFillWithParameters(immediate, from, pattern, 1, SIZE, extensions));
        let copied = append!(zeCommandListAppendMemoryCopyWithParameters(regular, to, from, SIZE, extensions));
        assert_eq!([filled, copied], [expected; 2]);
    }
    ok(zeCommandListClose(regular));
    let lists = &raw const regular;
    for (extensions, expected) in cases {
        let append = append!(zeCommandListImmediateAppendCommandListsWithParameters(immediate, 1, lists, extensions));
        assert_eq!(append, expected);
    }
    assert!(bytes(to, SIZE).iter().all(|byte| *byte == 7));
}
