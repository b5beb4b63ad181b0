//! `ZE_SOFT_LOG=1` says why a call was refused, whichever function it is.

use urscope_device::ddi::{EXTENSIONS, Function, LOADER, TABLES};

use crate::api::*;

/// Implemented functions that return something other than a `ze_result_t`.
const WITHOUT_RESULT: [&str; 6] = [
    "zeLoaderGetTracingHandle",
    "zelCheckIsLoaderInTearDown",
    "zeDriverGetDefaultContext",
    "zerGetDefaultContext",
    "zerTranslateDeviceHandleToIdentifier",
    "zerTranslateIdentifierToDeviceHandle",
];

/// Those that need no argument.
const WITHOUT_ARGUMENT: [&str; 7] = [
    "zeInit",
    "zeModuleDynamicLink",
    "zeLoaderInit",
    "zelLoaderDriverCheck",
    "zelSetDriverTeardown",
    "zelEnableTracingLayer",
    "zelDisableTracingLayer",
];

/// Whatever structures a function takes by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct OnStack([usize; 16]);

fn implemented() -> impl Iterator<Item = &'static Function> {
    let in_tables = TABLES.iter().flat_map(|table| table.functions);
    in_tables.chain(EXTENSIONS).chain(LOADER).filter(|function| function.is_implemented())
}

/// The handle of nothing.
const NOTHING: usize = 16;

fn call(function: &Function, first: usize) -> u32 {
    type Words = extern "C" fn(usize, usize, usize, usize, usize, usize, OnStack) -> u32;
    // SAFETY: all parameters are words, or structures of them on the stack. Those that are NULL are not followed, and a
    // handle of nothing is not, either.
    let function: Words = unsafe { std::mem::transmute(function.address) };
    function(first, 0, 0, 0, 0, 0, OnStack([0; 16]))
}

/// Calls all functions with nothing, before and after the initialisation, and those that miss a handle with one of
/// nothing. Prints what they return.
#[allow(clippy::print_stdout, reason = "the test reads it")]
fn refusals() {
    println!();
    let with_result = || implemented().filter(|function| !WITHOUT_RESULT.contains(&function.name));
    for round in 0..2 {
        for function in with_result() {
            let result = call(function, 0);
            println!("{} {result}", function.name);
            if round == 1 && result == INVALID_NULL_HANDLE {
                println!("{} {}", function.name, call(function, NOTHING));
            }
        }
        assert!(!driver().is_null());
    }
}

#[test]
fn every_refused_call_has_a_reason() {
    if role().is_some() {
        return refusals();
    }
    let output = run_child(child(this_test!(), "device", &[("ZE_SOFT_LOG", "1")]));
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let mut accepted = Vec::new();
    for function in implemented().map(|function| function.name).filter(|name| !WITHOUT_RESULT.contains(name)) {
        let results = stdout.lines().filter_map(|line| line.strip_prefix(function)?.strip_prefix(' '));
        let results: Vec<u32> = results.map(|result| result.parse().unwrap()).collect();
        let reasons = stderr.lines().filter_map(|line| line.strip_prefix(&format!("ze_soft: {function}: ")));
        let reasons: Vec<_> = reasons.collect();
        if results == [SUCCESS; 2] {
            accepted.push(function);
            assert!(reasons.is_empty(), "{function}: {reasons:?}");
            continue;
        }
        assert!(results.len() >= 2 && results.iter().all(|result| *result > 1), "{function}: {results:?}");
        assert_eq!(results.len(), reasons.len(), "{function}: {results:?}: {reasons:?}");
        for (result, reason) in results.iter().zip(reasons) {
            let says = match *result {
                INVALID_NULL_HANDLE => " handle is NULL (ZE_RESULT_ERROR_INVALID_NULL_HANDLE)",
                INVALID_NULL_POINTER => " is NULL (ZE_RESULT_ERROR_INVALID_NULL_POINTER)",
                INVALID_ARGUMENT => "(ZE_RESULT_ERROR_INVALID_ARGUMENT)",
                _ => panic!("{function}: {result:#x}"),
            };
            assert!(reason.ends_with(says), "{function}: {reason}");
        }
        if results.len() == 3 {
            let of_nothing = format!("ze_soft: {function}: {NOTHING:#x} is no ");
            assert!(stderr.contains(&of_nothing), "{function}: {stderr}");
        }
    }
    assert_eq!(accepted, WITHOUT_ARGUMENT);
}

/// Where the device knows more than the code says, and where it does not.
#[test]
fn a_reason_says_what_the_device_knows() {
    if role().is_some() {
        let setup = Setup::new();
        let mut out = null_mut();
        let [context, device] = [setup.context, setup.device];
        zeMemOpenIpcHandle(context, device, zeroed(), 0, &raw mut out);
        zeMemAllocDevice(context, &zeroed(), 4096, 0, std::ptr::without_provenance_mut(NOTHING), &raw mut out);
        zeMemAllocDevice(context, &zeroed(), 0, 0, device, &raw mut out);
        zeMemAllocDevice(context, &zeroed(), 4096, 0, device, null_mut());
        zeFenceReset(null_mut());
        let fill = urscope_device::ddi::lookup("zeGetFenceProcAddrTable").unwrap();
        // SAFETY: every getter has this signature (ze_ddi.h).
        let fill: extern "C" fn(u32, *mut usize) -> u32 = unsafe { std::mem::transmute(fill) };
        fill(API_VERSION, null_mut());
        return;
    }
    let variables = [("ZE_SOFT_LOG", "1"), ("ZE_SOFT_FAIL", "zeFenceReset:0x70010000")];
    let output = run_child(child(this_test!(), "device", &variables));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let reasons: Vec<_> = stderr.lines().filter_map(|line| line.strip_prefix("ze_soft: ")).collect();
    let expected = [
        "zeMemOpenIpcHandle: descriptor 0 is not that of exported memory with a file of its own (ZE_RESULT_ERROR_INVALID_ARGUMENT)",
        "zeMemAllocDevice: 0x10 is no Device handle, or was destroyed (ZE_RESULT_ERROR_INVALID_ARGUMENT)",
        "zeMemAllocDevice: a size is not supported (ZE_RESULT_ERROR_UNSUPPORTED_SIZE)",
        "zeMemAllocDevice: the pointer to the Pointer that it writes is NULL (ZE_RESULT_ERROR_INVALID_NULL_POINTER)",
        "zeFenceReset: ZE_SOFT_FAIL wants it (result 0x70010000)",
        "zeGetFenceProcAddrTable: the pointer to the *const () that it writes is NULL (ZE_RESULT_ERROR_INVALID_NULL_POINTER)",
    ];
    assert_eq!(reasons, expected);
}
