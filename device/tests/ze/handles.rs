//! Handles that are NULL, destroyed or invalid: calls return the result code and have no effect.

use crate::api::*;

/// A pointer to memory that is not an object of the device.
fn foreign() -> Handle {
    static SOMETHING: [u64; 64] = [0x4141_4141_4141_4141; 64];
    SOMETHING.as_ptr().cast_mut().cast::<c_void>()
}

#[test]
fn null_handles_are_refused() {
    let setup = Setup::new();
    let mut out = null_mut();
    let null_handle = null_mut();
    for result in [
        zeDriverGetApiVersion(null_handle, null_mut()),
        zeDeviceGet(null_handle, null_mut(), null_mut()),
        zeDeviceGetProperties(null_handle, null_mut()),
        zeContextCreate(null_handle, null(), &raw mut out),
        zeContextDestroy(null_handle),
        zeMemAllocDevice(null_handle, null(), 1, 0, setup.device, &raw mut out),
        zeMemAllocDevice(setup.context, null(), 1, 0, null_handle, &raw mut out),
        zeMemFree(null_handle, foreign()),
        zeMemOpenIpcHandle(null_handle, setup.device, zeroed(), 0, &raw mut out),
        zeMemOpenIpcHandle(setup.context, null_handle, zeroed(), 0, &raw mut out),
        zeCommandListDestroy(null_handle),
        zeCommandListAppendBarrier(null_handle, null_handle, 0, null()),
        zeCommandListHostSynchronize(null_handle, 0),
        zeCommandQueueExecuteCommandLists(null_handle, 0, null(), null_handle),
        zeEventDestroy(null_handle),
        zeEventHostSynchronize(null_handle, FOREVER),
        zeFenceHostSynchronize(null_handle, FOREVER),
    ] {
        assert_eq!(result, INVALID_NULL_HANDLE);
    }
}

#[test]
fn null_pointers_are_refused() {
    let (setup, list) = Setup::with_list(0);
    let place = setup.device_memory(64);
    for result in [
        zeDriverGet(null_mut(), null_mut()),
        zeDeviceGetProperties(setup.device, null_mut()),
        zeContextCreate(driver(), null(), null_mut()),
        zeMemFree(setup.context, null_mut()),
        zeMemGetIpcHandle(setup.context, null(), null_mut()),
        zeMemGetIpcHandle(setup.context, place, null_mut()),
        zeMemOpenIpcHandle(setup.context, setup.device, zeroed(), 0, null_mut()),
        zeMemCloseIpcHandle(setup.context, null()),
        zeCommandListCreateImmediate(setup.context, setup.device, null(), null_mut()),
        append!(zeCommandListAppendMemoryCopy(list, null_mut(), place, 1)),
        append!(zeCommandListAppendMemoryCopy(list, place, null(), 1)),
        append!(zeCommandListAppendMemoryFill(list, place, null(), 1, 1)),
        zeCommandListAppendWaitOnEvents(list, 1, null()),
        zeEventPoolCreate(setup.context, null(), 0, null(), null_mut()),
    ] {
        assert_eq!(result, INVALID_NULL_POINTER);
    }
    assert_eq!(zeCommandListAppendBarrier(list, null_mut(), 1, null()), INVALID_SIZE);
    assert_eq!(append!(zeCommandListAppendMemoryFill(list, place, place, 0, 1)), INVALID_SIZE);
}

#[test]
fn invalid_handles_are_refused_in_every_argument() {
    let (setup, list) = Setup::with_list(0);
    let invalid = foreign();
    let array = [invalid];
    for result in [
        zeDriverGetProperties(invalid, null_mut()),
        zeDeviceGetProperties(invalid, null_mut()),
        zeContextDestroy(invalid),
        zeMemAllocDevice(invalid, null(), 1, 0, setup.device, &mut null_mut()),
        append!(zeCommandListAppendBarrier(invalid)),
        zeCommandListAppendBarrier(list, invalid, 0, null()),
        zeCommandListAppendBarrier(list, null_mut(), 1, array.as_ptr()),
        zeCommandListDestroy(invalid),
        zeEventHostSignal(invalid),
        zeFenceReset(invalid),
        // A handle of another type is invalid too.
        zeCommandListClose(setup.context),
        zeContextDestroy(list),
        zeDeviceGetStatus(setup.context),
    ] {
        assert_eq!(result, INVALID_ARGUMENT);
    }
    ok(zeContextGetStatus(setup.context));
}

#[test]
fn destroyed_handles_are_refused() {
    let setup = Setup::new();
    let [event] = setup.events();
    ok(zeEventDestroy(event));
    assert_eq!(zeEventQueryStatus(event), INVALID_ARGUMENT);
    assert_eq!(zeEventDestroy(event), INVALID_ARGUMENT);
    let list = setup.immediate_list(0);
    ok(zeCommandListDestroy(list));
    assert_eq!(zeCommandListHostSynchronize(list, 0), INVALID_ARGUMENT);
    assert_eq!(zeCommandListDestroy(list), INVALID_ARGUMENT);
    let context = make(|out| zeContextCreate(driver(), &zeroed(), out));
    ok(zeContextDestroy(context));
    assert_eq!(zeContextDestroy(context), INVALID_ARGUMENT);
}

/// As with Intel's driver: Intel SHMEM makes many events at one index.
#[test]
fn events_at_one_index_of_a_pool_share_their_state() {
    let setup = Setup::new();
    let pool = setup.event_pool(2);
    let create = |index, out| zeEventCreate(pool, &EventDesc { index, ..zeroed() }, out);
    let mut out = null_mut();
    assert_eq!(create(2, &raw mut out), INVALID_ARGUMENT);
    let first = make(|out| create(1, out));
    ok(zeEventHostSignal(first));
    let second = make(|out| create(1, out));
    let other = make(|out| create(0, out));
    assert_eq!(zeEventQueryStatus(first), NOT_READY, "a new event resets the state");
    ok(zeEventHostSignal(second));
    assert_eq!((zeEventQueryStatus(first), zeEventQueryStatus(other)), (SUCCESS, NOT_READY));
    ok(zeEventHostReset(first));
    assert_eq!(zeEventQueryStatus(second), NOT_READY);
    // The other one can still be signalled and waited for.
    ok(zeEventDestroy(first));
    assert_eq!(zeEventHostSynchronize(second, 0), NOT_READY);
    ok(zeEventHostSignal(second));
    ok(zeEventHostSynchronize(second, 0));
    ok(zeEventDestroy(second));
    let again = make(|out| create(1, out));
    assert_eq!(zeEventQueryStatus(again), NOT_READY);
    ok(zeEventDestroy(again));
    ok(zeEventDestroy(other));
    ok(zeEventPoolDestroy(pool));
}
