//! Events whose state is in memory of the application.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::*;

const IMMEDIATE_AND_VISIBLE: u32 = 0b111;
const IPC: u32 = 1 << 3;

/// A word in memory of the device.
fn word<'a>(setup: Setup) -> &'a AtomicU64 {
    // SAFETY: the memory is not freed, and its pages are all zero.
    unsafe { AtomicU64::from_ptr(setup.device_memory(8).cast()) }
}

fn address(word: &AtomicU64) -> *mut u64 {
    word.as_ptr()
}

fn create<T>(setup: Setup, flags: u32, next: &T) -> (u32, Handle) {
    let desc = EventCounterBasedDesc { flags, p_next: std::ptr::from_ref(next).cast_mut().cast(), ..zeroed() };
    let mut event = null_mut();
    (zeEventCounterBasedCreate(setup.context, setup.device, &raw const desc, &raw mut event), event)
}

fn sync(device: *mut u64, host: *mut u64, completion_value: u64) -> ExternalSyncAllocationDesc {
    let s_type = ExternalSyncAllocationDesc::S_TYPE;
    ExternalSyncAllocationDesc {
        s_type,
        p_next: null_mut(),
        device_address: device,
        host_address: host,
        completion_value,
    }
}

fn aggregate(device: *mut u64, increment_value: u64, completion_value: u64) -> ExternalAggregateStorageDesc {
    let s_type = ExternalAggregateStorageDesc::S_TYPE;
    ExternalAggregateStorageDesc {
        s_type,
        p_next: null_mut(),
        device_address: device,
        increment_value,
        completion_value,
    }
}

fn made((result, event): (u32, Handle)) -> Handle {
    ok(result);
    event
}

#[test]
fn the_application_completes_an_event_by_a_value_in_its_memory() {
    let setup = Setup::new();
    let device = word(setup);
    let host = word(setup);
    let event = made(create(setup, IMMEDIATE_AND_VISIBLE, &sync(address(device), address(host), 5)));
    let [done] = setup.events();
    let list = setup.immediate_list(2);
    ok(zeCommandListAppendBarrier(list, done, 1, &raw const event));
    device.store(4, Ordering::Release);
    host.store(4, Ordering::Release);
    assert_eq!(zeEventQueryStatus(event), NOT_READY);
    assert_eq!(zeEventHostSynchronize(event, nanoseconds(Duration::from_millis(20))), NOT_READY);
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    // The host looks at one word, commands at the other one.
    host.store(6, Ordering::Release);
    ok(zeEventHostSynchronize(event, FOREVER));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    let mut value = 0;
    let mut at = 0;
    ok(zeEventCounterBasedGetDeviceAddress(event, &raw mut value, &raw mut at));
    assert_eq!((value, at), (5, address(device) as u64));
    // A command of another list writes the value, as a kernel or another process could.
    let other = setup.immediate_list(2);
    let five = 5_u64;
    ok(append!(zeCommandListAppendMemoryFill(other, address(device).cast(), (&raw const five).cast(), 8, 8)));
    ok(zeEventHostSynchronize(done, FOREVER));
    ok(zeEventDestroy(event));
}

#[test]
fn a_wait_goes_on_when_the_event_is_destroyed() {
    let setup = Setup::new();
    let device = word(setup);
    let event = made(create(setup, IMMEDIATE_AND_VISIBLE, &sync(address(device), null_mut(), 1)));
    let [done] = setup.events();
    let list = setup.immediate_list(2);
    ok(zeCommandListAppendBarrier(list, done, 1, &raw const event));
    ok(zeEventDestroy(event));
    // Neither does the memory go that the wait looks at.
    setup.free(address(device).cast());
    assert_eq!(zeEventHostSynchronize(done, nanoseconds(Duration::from_millis(20))), NOT_READY);
    device.store(1, Ordering::Release);
    ok(zeEventHostSynchronize(done, FOREVER));
}

#[test]
fn a_signal_of_a_list_replaces_the_memory() {
    let setup = Setup::new();
    let device = word(setup);
    let event = made(create(setup, IMMEDIATE_AND_VISIBLE, &sync(address(device), null_mut(), 1)));
    let [gate] = setup.events();
    let list = setup.immediate_list(2);
    ok(zeCommandListAppendBarrier(list, event, 1, &raw const gate));
    device.store(1, Ordering::Release);
    assert_eq!(zeEventQueryStatus(event), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(event, FOREVER));
    assert!(started(event) > 0);
    let mut value = 0;
    let mut at = 0;
    assert_eq!(zeEventCounterBasedGetDeviceAddress(event, &raw mut value, &raw mut at), UNSUPPORTED_FEATURE);
    assert_eq!(device.load(Ordering::Acquire), 1);
    ok(zeEventDestroy(event));
}

#[test]
fn signals_of_several_lists_are_added_up() {
    let setup = Setup::new();
    let sum = word(setup);
    sum.store(100, Ordering::Release);
    let event = made(create(setup, IMMEDIATE_AND_VISIBLE, &aggregate(address(sum), 7, 100 + 3 * 7)));
    let [gate, done] = setup.events();
    let lists = [(); 3].map(|()| setup.immediate_list(2));
    let waiting = setup.immediate_list(2);
    ok(zeCommandListAppendBarrier(waiting, done, 1, &raw const event));
    for list in &lists[..2] {
        ok(zeCommandListAppendSignalEvent(*list, event));
        ok(zeCommandListHostSynchronize(*list, FOREVER));
    }
    ok(zeCommandListAppendBarrier(lists[2], event, 1, &raw const gate));
    assert_eq!((sum.load(Ordering::Acquire), zeEventQueryStatus(event)), (114, NOT_READY));
    assert_eq!(zeEventQueryStatus(done), NOT_READY);
    ok(zeEventHostSignal(gate));
    ok(zeEventHostSynchronize(event, FOREVER));
    ok(zeEventHostSynchronize(done, FOREVER));
    assert_eq!(sum.load(Ordering::Acquire), 121);
    // It is reset by the application alone.
    sum.store(0, Ordering::Release);
    assert_eq!(zeEventQueryStatus(event), NOT_READY);
    ok(zeEventDestroy(event));
}

#[test]
fn memory_of_others_and_two_descriptions_are_refused() {
    let setup = Setup::new();
    let device = word(setup);
    let mut mine = 0_u64;
    let mut one = sync(address(device), null_mut(), 1);
    let mut both = aggregate(address(device), 1, 1);
    both.p_next = (&raw mut one).cast();
    let refused = [
        create(setup, IMMEDIATE_AND_VISIBLE, &sync(&raw mut mine, null_mut(), 1)),
        create(setup, IMMEDIATE_AND_VISIBLE, &sync(null_mut(), null_mut(), 1)),
        create(setup, IMMEDIATE_AND_VISIBLE, &sync(address(device), &raw mut mine, 1)),
        create(setup, IMMEDIATE_AND_VISIBLE, &sync((address(device) as usize + 4) as *mut u64, null_mut(), 1)),
        create(setup, IMMEDIATE_AND_VISIBLE, &aggregate(&raw mut mine, 1, 1)),
        create(setup, IMMEDIATE_AND_VISIBLE, &both),
    ];
    assert_eq!(refused, [(INVALID_ARGUMENT, null_mut()); 6]);
    let shared = create(setup, IMMEDIATE_AND_VISIBLE | IPC, &sync(address(device), null_mut(), 1));
    assert_eq!(shared, (UNSUPPORTED_FEATURE, null_mut()));
}

#[test]
fn the_device_says_what_its_events_can() {
    let device = devices()[0];
    let mut events = DeviceEventProperties { s_type: DeviceEventProperties::S_TYPE, ..zeroed() };
    let mut properties = DeviceProperties { p_next: (&raw mut events).cast(), ..zeroed() };
    ok(zeDeviceGetProperties(device, &raw mut properties));
    let mut largest = 0;
    let mut increment = 0;
    ok(zeDeviceGetCounterBasedEventMaxValue(device, &raw mut largest));
    ok(zeDeviceGetAggregatedCopyOffloadIncrementValue(device, &raw mut increment));
    assert_eq!((events.flags, largest, increment), (0b111, u64::MAX, 1));
}
