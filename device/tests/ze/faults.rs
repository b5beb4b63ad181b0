//! Fault injection (`ZE_SOFT_FAIL`).

use crate::api::*;

const CODE: u32 = 0x7001_0000;

#[test]
fn a_function_returns_its_code_and_does_nothing() {
    alone!(&[("ZE_SOFT_FAIL", "zeMemOpenIpcHandle:0x70010000")]);
    let setup = Setup::new();
    let memory = setup.device_memory(4096);
    let handle: IpcHandle = value(|out| zeMemGetIpcHandle(setup.context, memory, out));
    let mut out = null_mut();
    assert_eq!(zeMemOpenIpcHandle(setup.context, setup.device, handle, 0, &raw mut out), CODE);
    assert!(out.is_null());
}

/// Seven arguments, the last of them on the stack, arrive unchanged while other functions fail.
#[test]
fn other_functions_work_as_before() {
    alone!(&[("ZE_SOFT_FAIL", "zeMemFree:0x70010000,zeMemCloseIpcHandle:0x78000004")]);
    let setup = Setup::new();
    let [from, to] = [setup.device_memory(4096), setup.device_memory(4096)];
    bytes(from, 4096).fill(3);
    let list = setup.immediate_list(2);
    let [done] = setup.events();
    ok(zeCommandListAppendMemoryCopy(list, to, from, 4096, done, 0, null()));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert!(bytes(to, 4096).iter().all(|byte| *byte == 3));
    assert_eq!((zeMemFree(setup.context, from), zeMemCloseIpcHandle(setup.context, to)), (CODE, INVALID_ARGUMENT));
    assert_eq!(bytes(from, 1), [3], "it is still there");
}

/// Extension functions have no symbol, and a loader finds functions in the DDI tables.
#[test]
fn a_function_fails_however_it_is_found() {
    alone!(&[("ZE_SOFT_FAIL", "zexCounterBasedEventCreate2:0x70010000,zeFenceReset:0x70010000")]);
    let mut address = null::<c_void>();
    ok(zeDriverGetExtensionFunctionAddress(driver(), c"zexCounterBasedEventCreate2".as_ptr(), &raw mut address));
    // SAFETY: it has the arguments of zeEventCounterBasedCreate.
    let create: extern "C" fn(Handle, Handle, *const c_void, *mut Handle) -> u32 =
        unsafe { std::mem::transmute(address) };
    assert_eq!(create(null_mut(), null_mut(), null(), null_mut()), CODE);

    let mut table = [0_usize; 8];
    let getter = urscope_device::ddi::lookup("zeGetFenceProcAddrTable").unwrap();
    // SAFETY: every getter has this signature (ze_ddi.h), and there is room for its five members.
    let fill: extern "C" fn(u32, *mut usize) -> u32 = unsafe { std::mem::transmute(getter) };
    ok(fill(API_VERSION, table.as_mut_ptr()));
    // SAFETY: the fifth member is zeFenceReset (ze_ddi.h).
    let reset: extern "C" fn(Handle) -> u32 = unsafe { std::mem::transmute(table[4]) };
    assert_eq!(reset(null_mut()), CODE);
}
