use super::*;

use urscope_schema::api::role::Sources;

use crate::raw::args::reader::NoReader;

/// Reads what a test says.
#[derive(Debug, Default)]
struct TestReader {
    is_synchronous: bool,
    is_list: bool,
    lists: Vec<usize>,
}

impl Reader for TestReader {
    fn makes_synchronous(&self, _: &Sources) -> bool {
        self.is_synchronous
    }

    fn makes_list(&self, _: &Sources) -> bool {
        self.is_list
    }

    fn lists(&self, _: &Sources) -> (usize, usize) {
        (self.lists.as_ptr().expose_provenance(), self.lists.len())
    }
}

/// The inputs of a call that adds a command to `queue`.
fn on(queue: usize, reader: TestReader) -> Inputs {
    Inputs::of_queue(queue, Box::leak(Box::new(reader)))
}

/// The inputs of a call that has created a queue.
fn made(queue: usize, context: usize, reader: TestReader) -> Inputs {
    Inputs::of_new_queue(Box::leak(Box::new(queue)), context, Box::leak(Box::new(reader)))
}

fn no_inputs() -> Inputs {
    on(0, TestReader::default())
}

fn before(function: Function, inputs: &Inputs, values: &mut Values) -> Seen {
    super::before(function, function.effect(), inputs, values)
}

fn after(function: Function, call: u64, seen: Seen, result: ResultCode) {
    super::after(function.effect(), call, seen, result);
}

fn note_unrecorded(function: Function, inputs: &Inputs, result: ResultCode) -> bool {
    super::note_unrecorded(function, function.effect(), inputs, result)
}

fn called(function: Function, call: u64, blocking: Option<u64>, result: ResultCode) {
    let seen = before(function, &no_inputs(), &mut Values { value: blocking, ..Values::NONE });
    after(function, call, seen, result);
}

fn returned(function: Function, pointer: Option<u64>, answers: &Values) {
    note_memory(function, function.effect(), &NoReader, pointer, Seen::default(), ResultCode::SUCCESS, answers);
}

#[test]
fn the_pointers_of_a_kernel_into_shared_memory_are_named() {
    let base: u64 = 0x7100_0000_0000;
    let nearest_of = |pointers: &[u64]| {
        let mut nearest = Nearest { pointers: [None; 2], distances: [u64::MAX; 2] };
        for pointer in pointers {
            nearest.look_at(base.wrapping_add(*pointer));
        }
        nearest.pointers
    };
    let got = Values { data: Some(1), size: Some(0x1000), ..Values::NONE };
    returned(Function::urIPCGetMemHandleExp, Some(base + 0x1_0000), &got);
    returned(Function::urIPCOpenMemHandleExp, None, &Values { pointer: Some(base + 0x3_0000), ..Values::NONE });
    // A refused call shares nothing.
    returned(Function::urIPCGetMemHandleExp, Some(base + 0x2_0000), &Values::NONE);
    assert_eq!(nearest_of(&[0x2_0000, 0x1_1000, 0, 0xffff]), [None, None]);
    let both = [Some(base + 0x3_0000), Some(base + 0x1_0040)];
    assert_eq!(nearest_of(&[0x3_9000, 0x1_0040, 0x2_0000, 0x3_0000, 0x3_0000]), both);
    assert_eq!(nearest_of(&[0x1_0fff]), [Some(base + 0x1_0fff), None]);
    assert_eq!(nearest_of(&[base.wrapping_neg()]), [None, None]);
    for more in 0..200 {
        SHARED_RANGES.add(base + 0x40_0000_0000 + more, base + 0x40_0000_0001 + more);
    }
    assert_eq!(nearest_of(&[0x1_0000]), [None, None], "forgotten");
}

/// Physical memory, whose end needs no entry in the shared ranges: another test replaces these.
#[test]
fn a_list_is_asked_for_memory_that_has_ended_since() {
    let list = 0x9_0010;
    let base = 0x7200_0000_0000;
    let inputs = on(list, TestReader { lists: vec![0x9_0020, list], ..TestReader::default() });
    let executed = || executed_after_end(&inputs).map(|access| (access.address, access.writes, access.appended));
    let opened = || {
        let mapping = Values { pointer: Some(base), size: Some(0x1000), ..Values::NONE };
        returned(Function::zeMemOpenIpcHandle, None, &mapping);
    };
    let append = |call| {
        let values = Values { pointer: Some(0x10), source: Some(base + 0x100), ..Values::NONE };
        let seen = before(Function::zeCommandListAppendMemoryCopy, &inputs, &mut values.clone());
        note_appended(seen, call, &inputs, &values);
    };
    let ended = || note_end(Function::zeVirtualMemUnmap.effect(), base, Some(0x1000));
    let cleared = |function| note_unrecorded(function, &inputs, ResultCode::SUCCESS);
    opened();
    append(1);
    assert_eq!(executed(), None, "no such list is known");
    let made = made(list, 0, TestReader { is_list: true, ..TestReader::default() });
    note_unrecorded(Function::zeCommandListCreate, &made, ResultCode::SUCCESS);
    append(2);
    assert_eq!(executed(), None);
    ended();
    assert_eq!(executed(), Some((base + 0x100, false, 2)));
    append(3);
    opened();
    assert_eq!(executed(), None, "it is there again");
    ended();
    assert_eq!(executed(), Some((base + 0x100, false, 2)));
    cleared(Function::zeCommandListReset);
    assert_eq!(executed(), None, "what was appended after the end is none of it");
    opened();
    append(4);
    after(
        Function::zeCommandListAppendMemoryCopy,
        4,
        Seen { is_command: true, ..Seen::default() },
        ResultCode::UNKNOWN,
    );
    ended();
    assert_eq!(executed(), None, "refused");
}

/// One test, because a process has one such state.
#[test]
fn what_blocks_is_known_from_the_call_and_from_its_queue() {
    let copy = Function::urEnqueueUSMMemcpy;
    let done = ResultCode::SUCCESS;
    called(Function::urIPCOpenMemHandleExp, 1, None, ResultCode::INVALID_ARGUMENT);
    assert!(!are_recorded(), "nothing was opened");
    called(Function::urIPCOpenMemHandleExp, 1, None, done);
    assert!(are_recorded());
    // The other bytes of the register have no meaning.
    let blocks = |value| before(copy, &no_inputs(), &mut Values { value: Some(value), ..Values::NONE }).is_blocking;
    assert_eq!([0, 1, 0xff00, 0xff01].map(blocks), [false, true, false, true]);

    // On a synchronous queue, a command and an execution of a list wait.
    let handle = 0x7000;
    let append = Function::zeCommandListAppendMemoryCopy;
    let execute = Function::zeCommandQueueExecuteCommandLists;
    let on_queue = on(handle, TestReader::default());
    for is_synchronous in [false, true, false] {
        let inputs = made(handle, 0xc0, TestReader { is_synchronous, ..TestReader::default() });
        note_unrecorded(Function::zeCommandQueueCreate, &inputs, done);
        assert_eq!([handle, handle + 0x10, 0].map(|queue| context_of(noted(queue))), [Some(0xc0), None, None]);
        assert_eq!(before(append, &on_queue, &mut Values::NONE.clone()).is_blocking, is_synchronous);
        assert!(!before(append, &no_inputs(), &mut Values::NONE.clone()).is_blocking);
        assert_eq!(note_unrecorded(execute, &on_queue, done), is_synchronous);
        assert!(!note_unrecorded(execute, &on_queue, ResultCode::INVALID_ARGUMENT));
    }
}
