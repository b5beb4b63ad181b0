//! Tracers: callbacks around the functions of the API, with their arguments.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{sync::Mutex, thread};

use urscope_device::{Handle as Typed, ddi, ddi::tracing};

use crate::api::*;

/// What callbacks have seen, in their order.
static SEEN: Mutex<Vec<(&str, u64, Vec<u64>)>> = Mutex::new(Vec::new());

fn tracer(data: usize) -> Handle {
    make(|out| zelTracerCreate(&TracerDesc { s_type: 1, p_next: null_mut(), user_data: data }, out))
}

fn register(name: &str, tracer: Handle, kind: u32, callback: Option<TracerCallback>) -> u32 {
    tracing::register(name, Typed::from_word(tracer as usize), kind, callback).0
}

fn note(when: &'static str, result: u64, arguments: *const *mut u64, count: usize) {
    // SAFETY: the callback is registered for a function with as many arguments.
    let values = (0..count).map(|index| unsafe { **arguments.add(index) }).collect();
    SEEN.lock().unwrap().push((when, result, values));
}

fn taken() -> Vec<(&'static str, u64, Vec<u64>)> {
    std::mem::take(&mut *SEEN.lock().unwrap())
}

/// Runs `test` in a process of its own, with the tracing layer.
fn alone(name: &str, test: impl FnOnce(Setup)) {
    if role().is_none() {
        run_child(child(name, "device", &[("ZE_ENABLE_TRACING_LAYER", "1")]));
        return;
    }
    test(Setup::new());
}

unsafe extern "C" fn before_free(arguments: *const *mut u64, result: u64, data: usize, own: *mut usize) {
    note("before", result, arguments, 2);
    // Functions that a callback calls are not traced.
    // SAFETY: the second argument of zeMemFree is a pointer to memory that is not freed yet; `own` is for this call.
    unsafe {
        let mut base = null_mut();
        let context = **arguments as Handle;
        ok(zeMemGetAddressRange(context, **arguments.add(1) as *const c_void, &raw mut base, null_mut()));
        assert_eq!(base as u64, **arguments.add(1));
        *own = data + 1;
    }
}

unsafe extern "C" fn after_free(arguments: *const *mut u64, result: u64, data: usize, own: *mut usize) {
    note("after", result, arguments, 2);
    // SAFETY: `own` is for this call.
    assert_eq!(unsafe { *own }, data + 1);
}

unsafe extern "C" fn no_range(_: *const *mut u64, _: u64, _: usize, _: *mut usize) {
    panic!("a function that a callback calls was traced");
}

#[test]
fn callbacks_see_arguments_and_result() {
    alone("tracing::callbacks_see_arguments_and_result", |setup| {
        let tracer = tracer(40);
        ok(register("zeMemFree", tracer, 0, Some(before_free)));
        ok(register("zeMemFree", tracer, 1, Some(after_free)));
        ok(register("zeMemGetAddressRange", tracer, 0, Some(no_range)));
        let memory = [(); 3].map(|()| setup.device_memory(100));
        setup.free(memory[0]);
        assert!(taken().is_empty(), "it is not enabled yet");
        ok(zelTracerSetEnabled(tracer, 1));
        setup.free(memory[1]);
        let arguments = vec![setup.context as u64, memory[1] as u64];
        assert_eq!(taken(), [("before", 0, arguments.clone()), ("after", 0, arguments)]);
        // The result of a call that fails. (The callback must not ask for memory that is gone.)
        ok(zelTracerSetEnabled(tracer, 0));
        ok(register("zeMemFree", tracer, 0, None));
        ok(zelTracerResetAllCallbacks(tracer));
        ok(register("zeMemFree", tracer, 1, Some(after_failure)));
        ok(zelTracerSetEnabled(tracer, 1));
        assert_eq!(zeMemFree(setup.context, memory[1]), INVALID_ARGUMENT);
        let arguments = vec![setup.context as u64, memory[1] as u64];
        assert_eq!(taken(), [("failed", u64::from(INVALID_ARGUMENT), arguments)]);
        // While it is enabled its callbacks cannot be changed.
        assert_eq!(register("zeMemFree", tracer, 1, None), INVALID_ARGUMENT);
        assert_eq!(zelTracerResetAllCallbacks(tracer), INVALID_ARGUMENT);
        ok(zelTracerDestroy(tracer));
        setup.free(memory[2]);
        assert!(taken().is_empty());
        assert_eq!(zelTracerSetEnabled(tracer, 1), INVALID_ARGUMENT);
    });
}

unsafe extern "C" fn after_failure(arguments: *const *mut u64, result: u64, _: usize, _: *mut usize) {
    note("failed", result & 0xffff_ffff, arguments, 2);
}

/// Doubles the third argument.
unsafe extern "C" fn doubled(arguments: *const *mut u64, _: u64, _: usize, _: *mut usize) {
    // SAFETY: the functions that it is registered for have that many arguments.
    unsafe { **arguments.add(2) *= 2 };
}

#[test]
fn a_callback_may_change_arguments() {
    alone("tracing::a_callback_may_change_arguments", |setup| {
        let tracer = tracer(1);
        ok(register("zeMemAllocDevice", tracer, 0, Some(doubled)));
        ok(zelTracerSetEnabled(tracer, 1));
        let memory = setup.device_memory(5000);
        assert_eq!(value(|out| zeMemGetAddressRange(setup.context, memory, null_mut(), out)), 10_000);
        ok(zelTracerDestroy(tracer));
    });
}

/// Notes the arguments of zeMemOpenIpcHandle, of which the third is a structure of 64 bytes on the stack.
unsafe extern "C" fn opened(arguments: *const *mut u64, result: u64, _: usize, _: *mut usize) {
    // SAFETY: it is registered for that function.
    let (fixed, handle) = unsafe { (*arguments.add(3), (*arguments.add(2)).cast::<[u64; 8]>().read_unaligned()) };
    // SAFETY: as above.
    let mut values = vec![unsafe { **arguments }, unsafe { *fixed } & 0xffff_ffff];
    values.extend(handle);
    SEEN.lock().unwrap().push(("open", result, values));
}

/// Notes all arguments of a function with many.
unsafe extern "C" fn launched(arguments: *const *mut u64, _: u64, _: usize, _: *mut usize) {
    // SAFETY: it is registered for zeCommandListAppendLaunchKernelWithArguments, whose third and fourth argument are
    // structures of 12 bytes.
    let groups = [2, 3].map(|index| unsafe { (*arguments.add(index)).cast::<[u32; 3]>().read_unaligned() });
    let mut values: Vec<_> = groups.as_flattened().iter().map(|number| u64::from(*number)).collect();
    for index in [0, 1, 4, 5, 6, 8] {
        // SAFETY: as above.
        values.push(unsafe { **arguments.add(index) });
    }
    // SAFETY: as above.
    values.push(unsafe { **arguments.add(7) } & 0xffff_ffff);
    SEEN.lock().unwrap().push(("launch", 0, values));
}

#[test]
fn arguments_on_the_stack_and_structures_are_found() {
    alone("tracing::arguments_on_the_stack_and_structures_are_found", |setup| {
        let memory = setup.device_memory(5000);
        let handle: IpcHandle = value(|out| zeMemGetIpcHandle(setup.context, memory, out));
        let tracer = tracer(1);
        ok(register("zeMemOpenIpcHandle", tracer, 0, Some(opened)));
        ok(register("zeCommandListAppendLaunchKernelWithArguments", tracer, 0, Some(launched)));
        ok(zelTracerSetEnabled(tracer, 1));
        // The call itself gets them, too.
        let open = make(|out| zeMemOpenIpcHandle(setup.context, setup.device, handle, 1, out));
        bytes(memory, 5000)[7] = 3;
        assert_eq!(bytes(open, 5000)[7], 3);
        let words: Vec<u64> = handle.data.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!(taken(), [("open", 0, [vec![setup.context as u64, 1], words].concat())]);
        let pointer = |number: usize| number as *mut c_void;
        let groups = Extent { x: 1, y: 2, z: 3 };
        let group = Extent { x: 4, y: 5, z: 6 };
        let result = zeCommandListAppendLaunchKernelWithArguments(
            pointer(11),
            pointer(12),
            groups,
            group,
            pointer(13).cast(),
            pointer(14),
            pointer(15),
            16,
            pointer(17).cast(),
        );
        assert_eq!(result, INVALID_ARGUMENT);
        assert_eq!(taken(), [("launch", 0, vec![1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 17, 16])]);
        ok(zelTracerDestroy(tracer));
    });
}

unsafe extern "C" fn counted(_: *const *mut u64, _: u64, data: usize, _: *mut usize) {
    // SAFETY: the tracer was created with the address of a counter.
    unsafe { &*(data as *const AtomicUsize) }.fetch_add(1, Ordering::Relaxed);
}

/// `ze_callbacks_t` has 120 callbacks. These are the positions of those of zeContextCreate and zeMemFree.
#[test]
fn tables_of_callbacks_are_set_for_the_first_version_of_the_api() {
    alone("tracing::tables_of_callbacks_are_set_for_the_first_version_of_the_api", |setup| {
        const CALLBACKS: usize = 120;
        let [before, after] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let mut table: [Option<TracerCallback>; CALLBACKS] = [None; CALLBACKS];
        for position in [20, CALLBACKS - 13] {
            table[position] = Some(counted);
        }
        let first = tracer((&raw const before).addr());
        let second = tracer((&raw const after).addr());
        ok(zelTracerSetPrologues(first, table.as_ptr()));
        ok(zelTracerSetEpilogues(second, table.as_ptr()));
        for tracer in [first, second] {
            ok(zelTracerSetEnabled(tracer, 1));
        }
        setup.free(setup.device_memory(1));
        ok(zeContextDestroy(Setup::new().context));
        assert_eq!([before.load(Ordering::Relaxed), after.load(Ordering::Relaxed)], [2, 2]);
        // An injected fault is a result like any other, and one tracer ends without the other.
        ok(zelTracerDestroy(first));
        setup.free(setup.device_memory(1));
        assert_eq!([before.load(Ordering::Relaxed), after.load(Ordering::Relaxed)], [2, 3]);
        ok(zelTracerDestroy(second));
    });
}

#[test]
fn tracers_come_and_go_while_others_call() {
    alone("tracing::tracers_come_and_go_while_others_call", |setup| {
        let calls = AtomicUsize::new(0);
        let data = (&raw const calls).addr();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || (0..2000).for_each(|_| setup.free(setup.device_memory(64))));
            }
            for _ in 0..200 {
                let tracer = tracer(data);
                ok(register("zeMemFree", tracer, 0, Some(counted)));
                ok(register("zeMemAllocDevice", tracer, 1, Some(counted)));
                ok(zelTracerSetEnabled(tracer, 1));
                ok(zelTracerDestroy(tracer));
            }
        });
    });
}

#[test]
fn a_tracer_sees_calls_while_the_layer_is_enabled() {
    alone!(&[("ZE_ENABLE_TRACING_LAYER", "0")]);
    let setup = Setup::new();
    let mut out = null_mut();
    let mut enabled = true;
    ok(zelGetTracingLayerState(&raw mut enabled));
    assert!(!enabled);
    let count = AtomicUsize::new(0);
    let early = tracer(&raw const count as usize);
    ok(register("zeContextGetStatus", early, 0, Some(counted)));
    ok(zelTracerSetEnabled(early, 1));
    let is_seen = || {
        ok(zeContextGetStatus(setup.context));
        count.swap(0, Ordering::Relaxed) == 1
    };
    assert!(!is_seen());
    ok(zelEnableTracingLayer());
    assert!(is_seen());
    ok(zelEnableTracingLayer());
    ok(zelDisableTracingLayer());
    assert!(is_seen(), "it was enabled once more");
    ok(zelDisableTracingLayer());
    ok(zelDisableTracingLayer());
    assert!(!is_seen());
    ok(zelTracerDestroy(early));
    ok(zelEnableTracingLayer());
    ok(zelGetTracingLayerState(&raw mut enabled));
    assert!(enabled);
    ok(zelTracerDestroy(tracer(1)));
    assert_eq!(zelTracerCreate(null(), &raw mut out), INVALID_NULL_POINTER);
    assert_eq!(zelTracerSetEnabled(null_mut(), 1), INVALID_NULL_HANDLE);
    let tracer = tracer(1);
    assert_eq!(register("zeMemFree", tracer, 2, None), INVALID_ENUMERATION);
    assert_eq!(zelTracerSetPrologues(tracer, null()), INVALID_NULL_POINTER);
    // A function that is not implemented accepts callbacks, too.
    assert!(ddi::lookup("zeImageCreate").is_some());
    ok(register("zeImageCreate", tracer, 0, Some(counted)));
    ok(zelTracerSetEnabled(tracer, 1));
    ok(zelTracerDestroy(tracer));
}
